import { parseDuration } from '../../../kernel/duration.ts';
import { nearest } from '../../../kernel/nearest.ts';

/** Reports a flaw in a field; parsing continues, so that all flaws are reported at once. */
export type Report = (field: string, message: string) => void;

export type Fields = Readonly<Record<string, unknown>>;

/** The fields of a map; null counts as missing. Reports unknown keys. */
export function readFields(value: unknown, known: readonly string[], report: Report, at = ''): Fields {
  if (!isMap(value)) {
    report(at, `must be a map of keys, not ${kindOf(value)}`);
    return {};
  }
  for (const key of Object.keys(value)) {
    if (known.includes(key)) continue;
    report(fieldAt(at, shorten(key)), `unknown key${didYouMean(key, known)}`);
  }
  return Object.fromEntries(
    known
      .filter((key) => Object.hasOwn(value, key) && value[key] !== null)
      .map((key) => [key, value[key]] as const),
  );
}

/** Characters that need no escaping in URLs and headers. */
const NAME = /^[A-Za-z\d][\w.-]*$/;
const MAX_NAME = 255;

/** Empty if it is invalid. */
export function readName(value: unknown, field: string, report: Report): string {
  if (value === undefined || value === '') report(field, 'must not be empty');
  else if (typeof value !== 'string') report(field, `must be a string, not ${kindOf(value)}`);
  else if (value.length > MAX_NAME) report(field, `must not be longer than ${MAX_NAME} characters`);
  else if (NAME.test(value)) return value;
  else report(field, 'must consist of letters, digits, _, . and -, and begin with a letter or digit');
  return '';
}

/** A step name is also part of reference paths, whose separator is a dot. */
export function readStepName(value: unknown, report: Report): string {
  const name = readName(value, 'name', report);
  if (!name.includes('.')) return name;
  report('name', 'must not contain a dot');
  return '';
}

type Range = Readonly<{ min: number; max: number; fallback: number }>;

/** `stepsPerUnit`: 1 for whole numbers, 1000 where thousandths are allowed. */
export function readNumber(
  value: unknown,
  field: string,
  { min, max, fallback, stepsPerUnit = 1 }: Range & Readonly<{ stepsPerUnit?: 1 | 1000 }>,
  report: Report,
): number {
  if (value === undefined) return fallback;
  if (typeof value === 'number' && value >= min && value <= max) {
    const rounded = Math.round(value * stepsPerUnit) / stepsPerUnit;
    if (Math.abs(rounded - value) < 1e-9) return rounded;
  }
  report(field, `must be a ${stepsPerUnit === 1 ? 'whole number' : 'number'} from ${min} to ${max}`);
  return fallback;
}

export function readWord<const W extends string>(
  value: unknown,
  field: string,
  words: readonly [W, ...W[]],
  report: Report,
): W {
  const word = words.find((known) => known === value);
  if (word !== undefined || value === undefined) return word ?? words[0];
  const hint = typeof value === 'string' ? didYouMean(value, words) : '';
  report(field, `must be one of ${words.join(', ')}${hint}`);
  return words[0];
}

export function readFlag(value: unknown, field: string, report: Report): boolean {
  if (value === undefined || typeof value === 'boolean') return value ?? false;
  report(field, `must be true or false, not ${kindOf(value)}`);
  return false;
}

const MAX_DURATION_MS = 365 * 86_400_000;

export function readDuration(value: unknown, field: string, report: Report): number | null {
  if (value === undefined) return null;
  const ms = typeof value === 'string' ? parseDuration(value) : undefined;
  if (ms !== undefined && ms >= 1 && ms <= MAX_DURATION_MS) return ms;
  report(field, 'must be a duration from 1ms to 365d, such as 30m or 1h30m');
  return null;
}

/** `; did you mean method?`, or nothing. */
export function didYouMean(word: string, known: Iterable<string>): string {
  const meant = nearest(word, known);
  return meant.length === 0 ? '' : `; did you mean ${meant.join(' or ')}?`;
}

export function isMap(value: unknown): value is Fields {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

export function kindOf(value: unknown): string {
  if (value === undefined || value === null) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return isMap(value) ? 'a map' : 'an object of a class';
  return `a ${typeof value}`;
}

export const fieldAt = (at: string, key: string): string => (at === '' ? key : `${at}.${key}`);

/** Limits user input that is quoted in a message. */
export function shorten(text: string): string {
  const characters = Array.from(text.slice(0, 200));
  return characters.length > 60 ? `${characters.slice(0, 60).join('')}…` : text;
}
