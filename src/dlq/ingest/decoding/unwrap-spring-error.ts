import type { HeaderError } from './header-error.ts';
import { afterLast, causeOf, rootOfStack, type JavaCause } from './java-cause.ts';

/**
 * Spring wraps errors: the message begins with the listener's signature, or is only "failed to deserialize". Version 3
 * appends the message of the cause, earlier versions a chain of `; nested exception is <class>: <message>`. Without
 * either, the stack still ends with the root's `Caused by:`. Other messages are kept as they are.
 */
export function unwrapSpringError(error: HeaderError): HeaderError {
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

function nestedCause(message: string | undefined): JavaCause | undefined {
  if (message === undefined) return undefined;
  const nested = afterLast(message, 'nested exception is ') ?? afterLast(message, 'Caused by: ');
  return nested === undefined ? undefined : causeOf(nested);
}

function appendedCause(message: string | undefined): JavaCause | undefined {
  const appended = message?.replace(WRAPPER_MESSAGE, '');
  return appended === undefined || appended === '' ? undefined : { class: undefined, message: appended };
}
