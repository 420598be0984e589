import { pathText, printTemplate, type Reference, type Template } from '../saga/domain/workflow/template.ts';

declare const referred: unique symbol;

/** In an action every value must exist, in an undo it may be missing. */
export type Place = 'action' | 'undo';

/**
 * A reference to a value that is known only when the saga runs. It and its parts can be copied into a request, but not
 * computed with.
 */
export type Ref<T, P extends Place = Place> = Readonly<{ [referred]: readonly [value: T, place: P] }> &
  Parts<T, P>;

type Parts<T, P extends Place> =
  NonNullable<T> extends readonly (infer Each)[]
    ? Readonly<{ [index: number]: Ref<Each | undefined, P> }>
    : NonNullable<T> extends object
      ? {
          readonly [K in keyof NonNullable<T>]-?: Ref<
            NonNullable<T>[K] | (IsOptional<NonNullable<T>, K> extends true ? undefined : Absence<T>),
            P
          >;
        }
      : unknown;

/** A part of a value that may be missing may be missing too. */
type Absence<T> = T extends undefined | null ? undefined : never;

type IsOptional<T, K extends keyof T> =
  object extends Pick<T, K> ? true : undefined extends T[K] ? true : false;

/**
 * A request of type T made of values and references. A reference that may be missing is allowed only in an undo, and only
 * for optional fields: in an action nothing would be sent.
 */
export type Mapped<T> = unknown extends T ? AnyMapped : Ref<Exclude<T, undefined>> | MappedParts<T>;

type MappedParts<T> = T extends string | number | boolean | null
  ? T
  : T extends readonly (infer Each)[]
    ? readonly Mapped<Each>[]
    : T extends object
      ? {
          readonly [K in keyof T]:
            | Mapped<T[K]>
            | (IsOptional<T, K> extends true ? Ref<T[K] | undefined, 'undo'> : never);
        }
      : never;

type AnyMapped =
  | string
  | number
  | boolean
  | null
  | Ref<unknown>
  | readonly AnyMapped[]
  | Readonly<{ [key: string]: AnyMapped }>;

/** Callbacks must not share references: `own` means another response in each. */
export type Scope = object;

/** The only key that a reference exposes. */
const RECORD = Symbol('reference');

type Recorded = Readonly<{ scope: Scope; template: Template }>;

export function createRef<T, P extends Place>(reference: Reference, scope: Scope): Ref<T, P> {
  const name = pathText(reference);
  return recording({ scope, template: [reference] }, name, (key) =>
    createRef({ ...reference, path: [...reference.path, key] }, scope),
  ) as Ref<T, P>;
}

type Scalar = string | number | boolean;

/** A string with references: text`order-${input.id}`. */
export function text<P extends Place>(
  strings: TemplateStringsArray,
  ...values: readonly (Scalar | Ref<Scalar, P>)[]
): Ref<string, P> {
  const parts = strings.flatMap((part, index) => [part, ...partsOf(values[index] ?? '')]);
  const template = joined(parts);
  if (template.length === 1 && typeof template[0] === 'object')
    throw new TypeError('text`…` needs text besides its reference; otherwise use the reference itself');
  const scopes = new Set(
    values.map((value) => recordedIn(value)?.scope).filter((scope) => scope !== undefined),
  );
  const [scope = {}, another] = scopes;
  if (another !== undefined) throw new TypeError('text`…` has references of two callbacks');
  return recording({ scope, template }, 'a string with references', noParts) as Ref<string, P>;
}

function partsOf(value: unknown): Template {
  const recorded = recordedIn(value);
  if (recorded !== undefined) return recorded.template;
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
    return [String(value)];
  throw new TypeError('text`…` takes strings, numbers and references');
}

/** Asserts that the value will exist. If it does not, the action is not sent and the saga is undone. */
export function required<T>(reference: Ref<T, 'action'>): Ref<Exclude<T, undefined>, 'action'> {
  return reference as unknown as Ref<Exclude<T, undefined>, 'action'>;
}

/** Deeper than any request; also stops cyclic values. */
const MAX_DEPTH = 100;

/** The mapping in a definition. Undefined is omitted, as in JSON. */
export function recordMapping(value: unknown, scope: Scope, at: string, depth = 0): unknown {
  if (typeof value === 'string') return printTemplate(value === '' ? [] : [value]);
  if (typeof value === 'boolean' || value === null || Number.isFinite(value)) return value;
  const recorded = recordedIn(value);
  if (recorded !== undefined) return printIn(recorded, scope, at);
  if (depth > MAX_DEPTH) throw new TypeError(`${at} is nested too deeply`);
  const below = (key: string, child: unknown): unknown =>
    recordMapping(child, scope, `${at}.${key}`, depth + 1);
  if (Array.isArray(value)) return value.map((child, index) => below(String(index), child ?? null));
  if (typeof value !== 'object' || Object.getPrototypeOf(value) !== Object.prototype)
    throw new TypeError(`${at} is neither JSON nor a reference`);
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, child]) => child !== undefined)
      .map(([key, child]) => [key, below(key, child)]),
  );
}

/** A value in a path: `${input.id}`, or a URL-encoded string. */
export function recordPathValue(value: unknown, scope: Scope, at: string): string {
  const recorded = recordedIn(value);
  if (recorded !== undefined) return printIn(recorded, scope, at);
  if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean')
    throw new TypeError(`${at} is neither a string, a number nor a reference`);
  return printTemplate([encodeURIComponent(value)]);
}

function printIn({ scope, template }: Recorded, here: Scope, at: string): string {
  if (scope !== here) throw new TypeError(`${at} is a reference of another callback`);
  return printTemplate(template);
}

function recordedIn(value: unknown): Recorded | undefined {
  return typeof value === 'function' ? (value as { [RECORD]?: Recorded })[RECORD] : undefined;
}

function joined(parts: readonly (string | Reference)[]): Template {
  const template: (string | Reference)[] = [];
  for (const part of parts) {
    const last = template.at(-1);
    if (typeof part === 'string' && typeof last === 'string') template[template.length - 1] = last + part;
    else if (part !== '') template.push(part);
  }
  return template;
}

function noParts(key: string): never {
  throw new TypeError(`a string with references has no ${key}`);
}

/**
 * A proxy of a function, so that even calls such as `input.lines.map(…)` throw a helpful error. Truthiness and `===`
 * cannot be intercepted.
 */
function recording(recorded: Recorded, name: string, part: (key: string) => unknown): object {
  const refuse = (what: string) => (): never => {
    throw new TypeError(`${name} is a reference: ${what}; a mapping can only copy`);
  };
  const changed = refuse('it cannot be changed');
  return new Proxy(() => undefined, {
    get(_, key) {
      if (key === RECORD) return recorded;
      if (typeof key === 'string') return part(key);
      return key === Symbol.toPrimitive || key === Symbol.iterator || key === Symbol.asyncIterator
        ? refuse('it has no value yet that could be computed with')()
        : undefined;
    },
    apply: refuse('it cannot be called'),
    has: refuse('what it holds is not known yet'),
    ownKeys: refuse('what it holds is not known yet, so it cannot be spread or listed'),
    set: changed,
    defineProperty: changed,
    deleteProperty: changed,
  });
}
