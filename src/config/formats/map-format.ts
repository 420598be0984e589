import { nearest } from '../../kernel/nearest.ts';
import {
  accept,
  anyOf,
  isMap,
  jsonFromText,
  kindOf,
  oneOf,
  printable,
  reject,
  type Format,
  type Issue,
  type Parsed,
  type Unit,
} from './format.ts';
import { childPath } from '../key-path.ts';
import { camel, type OutputKey } from '../setting.ts';

const MAX_ENTRIES = 1000;

/** A field with a default (a setting) may be left out, any other is required. */
type Fields = Readonly<Record<string, Format<unknown, Unit>>>;

type ShapeValue<F extends Fields> = {
  readonly [K in keyof F & string as OutputKey<K, F[K]>]: F[K] extends Format<infer T, Unit> ? T : never;
};

/** What a format gives. */
export type ValueOf<F extends Format<unknown, Unit>> = F extends Format<infer T, Unit> ? T : never;

/** A map whose keys are all known; its values are under the keys that the code uses. */
export function shapeOf<F extends Fields>(fields: F, unknownKey = 'unknown key'): Format<ShapeValue<F>> {
  const known = Object.keys(fields);
  return {
    unit: '',
    keys: { known: fields },
    fromText: jsonFromText,
    parse(value) {
      if (!isMap(value)) return reject(`must be a map of keys, not ${kindOf(value)}`);
      const issues: Issue[] = Object.keys(value)
        .filter((key) => !Object.hasOwn(fields, key))
        .map((key) => ({
          at: childPath('', printable(key)),
          reason: unknownKey,
          suggestion: anyOf(nearest(key, known)),
        }));
      const result: Record<string, unknown> = {};
      for (const [key, format] of Object.entries(fields)) {
        const parsed = parseField(format, Object.hasOwn(value, key) ? value[key] : undefined);
        if (parsed.ok) result[`${camel(key)}${format.unit}`] = parsed.value;
        else issues.push(...within(key, parsed.issues));
      }
      return issues.length > 0 ? { ok: false, issues } : accept(result as ShapeValue<F>);
    },
  };
}

function parseField<T>(format: Format<T, Unit>, value: unknown): Parsed<T> {
  if (value !== undefined && value !== null) return format.parse(value);
  return 'fallback' in format ? accept(format.fallback as T) : reject('is missing');
}

/** A map whose other keys depend on one word in it, such as `type`. */
export function variantsOf<const Tag extends string, V extends Readonly<Record<string, Fields>>>(
  tag: Tag,
  variants: V,
): Format<{ [K in keyof V & string]: Readonly<Record<Tag, K>> & ShapeValue<V[K]> }[keyof V & string]> {
  type Value = { [K in keyof V & string]: Readonly<Record<Tag, K>> & ShapeValue<V[K]> }[keyof V & string];
  const words = oneOf(...Object.keys(variants));
  const shapes = new Map(
    Object.entries(variants).map(([word, fields]) => [
      word,
      shapeOf({ [tag]: words, ...fields }, `unknown key for ${tag} ${word}`),
    ]),
  );
  return {
    unit: '',
    keys: { known: Object.assign({ [tag]: words }, ...Object.values(variants)) as Fields },
    fromText: jsonFromText,
    parse(value) {
      if (!isMap(value)) return reject(`must be a map of keys, not ${kindOf(value)}`);
      const word = parseField(words, Object.hasOwn(value, tag) ? value[tag] : undefined);
      if (!word.ok) return { ok: false, issues: within(tag, word.issues) };
      return (shapes.get(word.value) as Format<Value>).parse(value);
    },
  };
}

/** A map whose keys the user chooses. An entry that is wrong does not hide what rules have to say of the others. */
export function mapOf<T>(name: Format<string>, entry: Format<T>): Format<Readonly<Record<string, T>>> {
  return {
    unit: '',
    keys: { chosen: entry },
    fromText: jsonFromText,
    parse(value) {
      if (!isMap(value)) return reject(`must be a map of names, not ${kindOf(value)}`);
      const given = Object.entries(value).filter(([, each]) => each !== null);
      if (given.length > MAX_ENTRIES) return reject(`must be a map of at most ${MAX_ENTRIES} names`);
      const issues: Issue[] = [];
      const entries: (readonly [string, T])[] = [];
      for (const [key, each] of given) {
        const named = name.parse(key);
        const parsed = named.ok ? entry.parse(each) : named;
        if (parsed.ok) entries.push([key, parsed.value]);
        else issues.push(...within(key, parsed.issues));
      }
      const result = Object.fromEntries(entries);
      return issues.length > 0 ? { ok: false, issues, rest: result } : accept(result);
    },
  };
}

/** Either one word or text, or a map. */
export function orMap<A, B>(single: Format<A>, map: Format<B>): Format<A | B> {
  return {
    unit: '',
    fromText: (text) => (text.trimStart().startsWith('{') ? jsonFromText(text) : single.fromText(text)),
    parse: (value) => (isMap(value) ? map.parse(value) : single.parse(value)),
  };
}

const within = (key: string, issues: readonly Issue[]): readonly Issue[] =>
  issues.map((issue) => ({ ...issue, at: `${childPath('', printable(key))}${issue.at}` }));

const NAME = /^[a-z][a-z\d_.-]{0,99}$/;

/** The name of something that users make; `whats` are such things. */
export function chosenName(whats: string): Format<string> {
  return {
    unit: '',
    fromText: (text) => text,
    parse(value) {
      const name = typeof value === 'string' ? value : '';
      if (NAME.test(name)) return accept(name);
      if (name.startsWith('_'))
        return reject(`names that begin with _ are reserved for ${whats} that the system makes itself`);
      const small = name.toLowerCase();
      return reject('a name must be 1 to 100 characters of a-z, 0-9, _, . and -, beginning with a letter', {
        suggestion: NAME.test(small) ? small : undefined,
      });
    },
  };
}
