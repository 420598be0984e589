import type { ToldError } from './told-error.ts';

/**
 * Spring wraps what went wrong: the message begins with the listener's signature, or says no more than "failed
 * to deserialize". Version 3 appends the cause's message, earlier ones a chain of `; nested exception is
 * <class>: <message>`, and where neither is there the stack still ends in the root's `Caused by:`. A message
 * that is no wrapper's stays as it is.
 */
export function unwrapSpringError(error: ToldError): ToldError {
  const cause = nestedCause(error.message) ?? appendedCause(error.message) ?? rootOfStack(error.stack);
  const className = isWrapper(error.class)
    ? (cause?.class ?? rootOfStack(error.stack)?.class ?? error.class)
    : error.class;
  return { message: cause?.message, class: className, stack: error.stack };
}

const WRAPPERS: ReadonlySet<string> = new Set([
  'org.springframework.kafka.listener.ListenerExecutionFailedException',
  'org.springframework.kafka.support.serializer.DeserializationException',
]);

const WRAPPER_MESSAGE =
  /^(?:Listener method '[^']*' threw exception|Listener failed|failed to deserialize)(?:; |$)/;

function isWrapper(className: string | undefined): boolean {
  return className === undefined || WRAPPERS.has(className);
}

type Cause = Readonly<{ class: string | undefined; message: string | undefined }>;

function nestedCause(message: string | undefined): Cause | undefined {
  if (message === undefined) return undefined;
  const nested = afterLast(message, 'nested exception is ') ?? afterLast(message, 'Caused by: ');
  return nested === undefined ? undefined : causeOf(nested);
}

function appendedCause(message: string | undefined): Cause | undefined {
  const told = message?.replace(WRAPPER_MESSAGE, '');
  return told === undefined || told === '' ? undefined : { class: undefined, message: told };
}

function rootOfStack(stack: string | undefined): Cause | undefined {
  if (stack === undefined) return undefined;
  const root = afterLast(stack, '\nCaused by: ') ?? stack;
  const frames = /\n\t(?:at |\.\.\. )/.exec(root);
  return causeOf(frames === null ? root : root.slice(0, frames.index));
}

function afterLast(text: string, mark: string): string | undefined {
  const at = text.lastIndexOf(mark);
  return at < 0 ? undefined : text.slice(at + mark.length);
}

/** Reads what Java's `Throwable.toString` writes: `<class>: <message>`, or the class alone. */
function causeOf(text: string): Cause {
  const told = text.trim();
  const className = /^[\w$]+(?:\.[\w$]+)+(?=: |:?$)/.exec(told)?.[0];
  const message = className === undefined ? told : told.slice(className.length + 1).trim();
  return { class: className, message: message === '' ? undefined : message };
}
