import { types } from 'node:util';
import { messageOf } from '../kernel/errors.ts';
import { jsonExtent, MAX_JSON_BYTES } from '../kernel/json-extent.ts';

/** What a service handed over, as JSON text; or why the text would not say what the service meant. */
export type WrittenJson = Readonly<{ text: string }> | Readonly<{ reason: string }>;

/** As JSON.stringify, but what JSON would drop or turn into null without a word is refused. */
export function writeJson(name: string, value: unknown): WrittenJson {
  try {
    const text = JSON.stringify(value, refuseLoss) as string | undefined;
    return text === undefined ? { reason: `${name} has no JSON form` } : requireExtent(name, text);
  } catch (error) {
    return { reason: `${name} ${error instanceof Loss ? '' : 'has no JSON form: '}${messageOf(error)}` };
  }
}

/** As the database counts it: `1e308` is stored in a few bytes, and read back as 309 digits. */
function requireExtent(name: string, text: string): WrittenJson {
  const { bytes } = jsonExtent(text, Number.POSITIVE_INFINITY);
  if (bytes <= MAX_JSON_BYTES) return { text };
  return {
    reason: `${name} takes ${bytes} bytes as PostgreSQL writes it; at most ${MAX_JSON_BYTES} are accepted`,
  };
}

/** Something that JSON would drop or turn into null without a word. */
class Loss extends Error {}

/** Called for every value as it is written, so that what was checked is what is stored. */
function refuseLoss(this: unknown, name: string, value: unknown): unknown {
  const plain = types.isBoxedPrimitive(value) ? value.valueOf() : value;
  const kind = kindWithoutJson(this as Readonly<Record<string, unknown>>, name, plain);
  if (kind !== null) throw new Loss(`holds ${kind} at ${JSON.stringify(name)}, which JSON cannot`);
  return plain;
}

function kindWithoutJson(
  holder: Readonly<Record<string, unknown>>,
  name: string,
  value: unknown,
): string | null {
  if (typeof value === 'number') return Number.isFinite(value) ? null : String(value);
  if (typeof value === 'bigint' || typeof value === 'function' || typeof value === 'symbol')
    return `a ${typeof value}`;
  if (value === undefined) return Array.isArray(holder) ? 'undefined' : null;
  if (value === null) return types.isDate(holder[name]) ? 'an invalid date' : null;
  if (typeof value !== 'object') return null;
  return emptyKinds.find(([, isOne]) => isOne(value))?.[0] ?? null;
}

/** Objects with contents that JSON.stringify writes as `{}`. */
const emptyKinds: readonly (readonly [name: string, isOne: (value: object) => boolean])[] = [
  ['a Map', types.isMap],
  ['a Set', types.isSet],
  ['a Promise', types.isPromise],
  ['a RegExp', types.isRegExp],
  ['an Error', types.isNativeError],
  ['an ArrayBuffer', types.isAnyArrayBuffer],
];
