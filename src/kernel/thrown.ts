import { inspect, types } from 'node:util';

/**
 * What is known of a thrown value. JavaScript lets code throw anything, and reading it may throw again: a proxy, a
 * getter, an object without a prototype. Nothing here ever throws, and nothing grows without a bound.
 */
export type Thrown = Readonly<{
  message: string;
  /** The name of its class; of a primitive, its type. Null where it cannot be read. */
  className: string | null;
  /** With the stacks of its causes; null where there is none. */
  stack: string | null;
}>;

const unreadable = 'a value was thrown that cannot be read';
const maxMessage = 16_384;
const maxStack = 16_384;
/** More of the message than this would leave no room for the frames. */
const maxMessageInStack = 500;
const maxName = 200;
const maxCauses = 5;
const maxErrors = 10;

export function describeThrown(value: unknown): Thrown {
  return { message: thrownMessage(value), className: classNameOf(value), stack: stackOf(value) };
}

/** Its own words. A plain object is shown as JSON. */
export function thrownMessage(value: unknown): string {
  return cut(
    attempt(() => messageOf(value), unreadable),
    maxMessage,
  );
}

/** What `read` gives, or the other value where reading throws. */
export function attempt<T>(read: () => T, otherwise: T): T {
  try {
    return read();
  } catch {
    return otherwise;
  }
}

/** Also an error of another realm. */
function isError(value: unknown): value is Error {
  return types.isNativeError(value) || value instanceof Error;
}

function messageOf(value: unknown, isWithin = false): string {
  if (typeof value === 'function') {
    const name: unknown = value.name;
    return `a function was thrown: ${typeof name === 'string' && name !== '' ? name : 'without a name'}`;
  }
  if (typeof value !== 'object' || value === null) return String(value);
  if (!isError(value)) return textOf(value);
  const message: unknown = value.message;
  if (message !== '' && message !== undefined) return typeof message === 'string' ? message : textOf(message);
  const { errors } = value as Readonly<{ errors?: unknown }>;
  const several = Array.isArray(errors) && !isWithin ? messagesOf(errors) : '';
  return several || nameOf(value) || unreadable;
}

/** One level deep: an error may hold itself. */
function messagesOf(errors: readonly unknown[]): string {
  return errors
    .slice(0, maxErrors)
    .map((error) => attempt(() => messageOf(error, true), unreadable))
    .join('; ');
}

/** JSON where it says something, else as Node.js shows values. */
function textOf(value: unknown): string {
  const json = attempt(() => JSON.stringify(value), undefined);
  if (typeof json === 'string' && json !== '{}') return json;
  return inspect(value, {
    depth: 3,
    breakLength: Infinity,
    compact: true,
    customInspect: false,
    maxArrayLength: 50,
    maxStringLength: 1000,
  });
}

function nameOf(error: Error): string {
  const name: unknown = error.name;
  return typeof name === 'string' ? name : '';
}

function classNameOf(value: unknown): string | null {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null)
    return value === null ? 'null' : typeof value;
  const name = attempt(() => {
    const given = isError(value) ? nameOf(value) : '';
    const made: unknown = (value as Readonly<{ constructor?: Readonly<{ name?: unknown }> }>).constructor
      ?.name;
    // A class that gives its errors no name of their own has the name `Error`, which says nothing.
    return given === '' || given === 'Error' ? made : given;
  }, null);
  return typeof name === 'string' && name !== '' ? cut(name, maxName) : null;
}

function stackOf(value: unknown): string | null {
  const stacks: string[] = [];
  for (let at = value, depth = 0; depth <= maxCauses && at !== undefined && at !== null; depth += 1) {
    const one = attempt(() => ownStack(at), null);
    if (one === null && depth === 0) return null;
    stacks.push(depth === 0 ? (one ?? '') : `caused by: ${one ?? thrownMessage(at)}`);
    at = attempt(() => (at as Readonly<{ cause?: unknown }>).cause, undefined);
  }
  return stacks.length === 0 ? null : cut(stacks.join('\n'), maxStack);
}

function ownStack(value: unknown): string | null {
  if (!isError(value)) return null;
  const { stack, message } = value as Readonly<{ stack?: unknown; message?: unknown }>;
  if (typeof stack !== 'string' || stack === '') return null;
  return typeof message === 'string' && message.length > maxMessageInStack
    ? stack.replace(message, () => cut(message, maxMessageInStack))
    : stack;
}

function cut(text: string, length: number): string {
  return text.length > length ? `${text.slice(0, length)}…` : text;
}
