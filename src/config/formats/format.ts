import { formatDuration, parseDuration } from '../../kernel/duration.ts';
import { nearest } from '../../kernel/nearest.ts';
import { Secret } from '../layers/secret.ts';

/** What is wrong with a value, and where inside it (`[0].match`; empty for the value itself). */
export type Issue = Readonly<{ at: string; reason: string; suggestion?: string | undefined }>;

export type Parsed<T> =
  | Readonly<{ ok: true; value: T }>
  /** `rest`: what is right nevertheless, so that rules can look at it and all problems are told at once. */
  | Readonly<{ ok: false; issues: readonly Issue[]; rest?: T }>;

/** Put behind the key's name where a number needs its unit. */
export type Unit = '' | 'Ms';

/** How a value is written and what it becomes. Reasons never repeat the value: it may be a misplaced secret. */
export type Format<T, U extends Unit = ''> = Readonly<{
  unit: U;
  parse(value: unknown): Parsed<T>;
  /** What the text of an environment variable or a secret file means, before it is parsed. */
  fromText(text: string): unknown;
  /** Where the value is a map that merges over the layers, key by key: what stands under its keys. */
  keys?: KeyFormats;
  /** It means nothing to us: a map of it does not merge, and null in it is null. */
  isData?: true;
}>;

/** Either the user chooses the keys, or they are all known. */
export type KeyFormats =
  | Readonly<{ chosen: Format<unknown, Unit> }>
  | Readonly<{ known: Readonly<Record<string, Format<unknown, Unit>>> }>;

const MAX_TEXT = 4096;
const MAX_ITEMS = 1000;

const asIs = (text: string): string => text;

export const accept = <T>(value: T): Parsed<T> => ({ ok: true, value });

export const reject = (
  reason: string,
  more: { at?: string; suggestion?: string | undefined } = {},
): Parsed<never> => ({
  ok: false,
  issues: [{ at: more.at ?? '', reason, suggestion: more.suggestion }],
});

/** Text that `isValid` accepts; `what` completes the sentence "must be …". */
export function text(what = 'text', isValid: (value: string) => boolean = () => true): Format<string> {
  return {
    unit: '',
    fromText: asIs,
    parse(value) {
      if (typeof value === 'number' || typeof value === 'boolean')
        return reject(`must be ${what}, not ${kindOf(value)}: put it in quotes`);
      if (typeof value !== 'string') return reject(`must be ${what}, not ${kindOf(value)}`);
      if (value.length > MAX_TEXT) return reject(`must be ${what} of at most ${MAX_TEXT} characters`);
      // They break log lines, file names and connection strings alike.
      if (/\p{Cc}/u.test(value)) return reject(`must be ${what} without control characters`);
      return isValid(value) ? accept(value) : reject(`must be ${what}`);
    },
  };
}

export const filePath = (): Format<string> => text('the path of a file', (value) => value !== '');

export function secret(): Format<Secret> {
  const plain = text();
  return {
    unit: '',
    fromText: asIs,
    parse(value) {
      const parsed = plain.parse(value);
      return parsed.ok ? accept(new Secret(parsed.value)) : { ok: false, issues: parsed.issues };
    },
  };
}

export function flag(): Format<boolean> {
  return {
    unit: '',
    fromText: (value) => ({ true: true, '1': true, false: false, '0': false })[value.toLowerCase()] ?? value,
    parse: (value) =>
      typeof value === 'boolean' ? accept(value) : reject(`must be true or false, not ${kindOf(value)}`),
  };
}

export function wholeNumber(min: number, max: number): Format<number> {
  const what = `a whole number from ${min} to ${max}`;
  return {
    unit: '',
    fromText: (value) => (/^-?\d{1,15}$/.test(value) ? Number(value) : value),
    parse(value) {
      if (typeof value !== 'number') return reject(`must be ${what}, not ${kindOf(value)}`);
      return Number.isInteger(value) && value >= min && value <= max
        ? accept(value)
        : reject(`must be ${what}`);
    },
  };
}

/** A number that may have decimals. */
export function decimal(min: number, max: number): Format<number> {
  const what = `a number from ${min} to ${max}`;
  return {
    unit: '',
    fromText: (value) => (/^-?\d{1,15}(\.\d{1,15})?$/.test(value) ? Number(value) : value),
    parse(value) {
      if (typeof value !== 'number') return reject(`must be ${what}, not ${kindOf(value)}`);
      return value >= min && value <= max ? accept(value) : reject(`must be ${what}`);
    },
  };
}

/** A duration such as `1h30m` within bounds that are written the same way; it becomes milliseconds. */
export function duration(min: string, max: string): Format<number, 'Ms'> {
  const [minMs = 0, maxMs = 0] = [parseDuration(min), parseDuration(max)];
  const what = `a duration from ${formatDuration(minMs)} to ${formatDuration(maxMs)}`;
  return {
    unit: 'Ms',
    fromText: asIs,
    parse(value) {
      if (typeof value === 'number' || (typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value)))
        return reject(`must be ${what}, and its unit is missing: write ms, s, m, h or d behind the number`);
      if (typeof value !== 'string') return reject(`must be ${what}, not ${kindOf(value)}`);
      const ms = parseDuration(value);
      return ms !== undefined && ms >= minMs && ms <= maxMs
        ? accept(ms)
        : reject(`must be ${what}, such as 250ms, 30s or 1h30m`);
    },
  };
}

/** One of the given words, in capitals or not. */
export function oneOf<const T extends string>(...words: readonly T[]): Format<T> {
  return {
    unit: '',
    fromText: asIs,
    parse(value) {
      const reason = `must be one of ${words.join(', ')}`;
      if (typeof value !== 'string') return reject(`${reason}, not ${kindOf(value)}`);
      const found = words.find((word) => word.toLowerCase() === value.toLowerCase());
      return found === undefined
        ? reject(reason, { suggestion: anyOf(nearest(value, words)) })
        : accept(found);
    },
  };
}

/** In an environment variable: `a,b,c`, or a JSON list. `single`: one item may stand without a list around it. */
export function listOf<T>(
  item: Format<T>,
  { min = 0, single = false }: { min?: number; single?: boolean } = {},
): Format<readonly T[]> {
  return {
    unit: '',
    fromText: listFromText,
    parse(value) {
      const items: unknown = single && typeof value === 'string' ? [value] : value;
      if (!Array.isArray(items)) return reject(`must be a list, not ${kindOf(value)}`);
      if (items.length < min || items.length > MAX_ITEMS)
        return reject(`must be a list of ${min} to ${MAX_ITEMS} items`);
      const parsed = items.map((each) => item.parse(each));
      const issues = parsed.flatMap((each, index) =>
        each.ok ? [] : each.issues.map((issue) => ({ ...issue, at: `[${index}]${issue.at}` })),
      );
      return issues.length > 0
        ? { ok: false, issues }
        : accept(parsed.flatMap((each) => (each.ok ? [each.value] : [])));
    },
  };
}

function listFromText(value: string): unknown {
  if (!value.trimStart().startsWith('[')) {
    const items = value.split(',').map((item) => item.trim());
    return items.filter((item) => item !== '');
  }
  return jsonFromText(value);
}

/** What is no JSON stays as it is, for the format to refuse. */
export function jsonFromText(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

/** The same format with one more demand on the value: `reasonAgainst` says what is wrong, if anything. */
export function refine<T, U extends Unit>(
  format: Format<T, U>,
  reasonAgainst: (value: T) => string | undefined,
): Format<T, U> {
  return {
    ...format,
    parse(value) {
      const parsed = format.parse(value);
      const reason = parsed.ok ? reasonAgainst(parsed.value) : undefined;
      return reason === undefined ? parsed : reject(reason);
    },
  };
}

export const isMap = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Suggestions in words; undefined when there are none. */
export const anyOf = (words: readonly string[]): string | undefined =>
  words.length === 0 ? undefined : words.join(' or ');

/** A key as it may stand in one line of an error message. */
export const printable = (key: string): string =>
  key.slice(0, 80).replaceAll(/\p{Cc}|\p{Zl}|\p{Zp}/gu, '\uFFFD');

/** A value by its kind, for the words "must be …, not …". */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'string') return 'text';
  if (typeof value === 'number') return 'a number';
  return typeof value === 'boolean' ? 'true or false' : 'a map';
}
