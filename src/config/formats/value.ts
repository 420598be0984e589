import { Type, type StaticDecode, type TArray, type TCodec, type TProperties, type TSchema } from 'typebox';

import { durationPattern, formatDuration, parseDuration } from '../../kernel/duration.ts';
import type { Duration, InCode } from '../in-code.ts';
import { Secret } from '../layers/secret.ts';

/** What a rule finds wrong, and where inside the value. It must not repeat the value, which may be a secret. */
export type Flaw = string | FlawAt;
export type FlawAt = Readonly<{ at: string; reason: string }>;

/**
 * What the schema says about a key besides its type. `description`, `default` and `examples` go to the reference, the
 * example file and the JSON Schema.
 */
export type About = Readonly<{
  description?: string;
  /** As written in a file. */
  default?: unknown;
  /** The default in words, where it follows from other keys. */
  otherwise?: string;
  examples?: readonly unknown[];
  /** A second environment variable, after which the one named by the path is read. */
  variable?: string;
  /** The file in the secrets folder that holds the value. */
  secretFile?: string;
  /** The value must not be shown, and may be in a file. */
  isSecret?: true;
  /** The value may have several lines. */
  hasLines?: true;
}>;

export type TextAbout = About &
  Readonly<{
    /** Completes the sentence "must be …". */
    what?: string;
    pattern?: string;
    /** For what a pattern does not say. */
    isValid?: (value: string) => boolean;
    /** The whole sentence instead. */
    reason?: (value: unknown) => string;
    /** One more demand on a valid value. */
    rule?: (value: string) => Flaw | undefined;
  }>;

export const MAX_TEXT = 4096;
export const MAX_ITEMS = 1000;
export const MIB = 1024 * 1024;

export const text = ({ what = 'text', ...about }: TextAbout = {}) =>
  Type.String({ what, maxLength: MAX_TEXT, ...about });

export const filePath = (about: TextAbout = {}) =>
  text({ what: 'the path of a file', pattern: '.', ...about });

export const secret = (about: About = {}) =>
  Type.Decode(text({ isSecret: true, ...about }), (value) => new Secret(value));

export const flag = (about: About = {}) => Type.Boolean({ what: 'true or false', ...about });

export const wholeNumber = (minimum: number, maximum: number, about: About = {}) =>
  Type.Integer({ what: `a whole number from ${minimum} to ${maximum}`, minimum, maximum, ...about });

/** A number that may have decimals. */
export const decimal = (minimum: number, maximum: number, about: About = {}) =>
  Type.Number({ what: `a number from ${minimum} to ${maximum}`, minimum, maximum, ...about });

/** A duration such as `1h30m` within bounds that are written the same way. */
export function duration(min: string, max: string, about: About = {}) {
  const [minMs = 0, maxMs = 0] = [parseDuration(min), parseDuration(max)];
  const bounds = `a duration from ${formatDuration(minMs)} to ${formatDuration(maxMs)}`;
  const written = text({
    what: bounds,
    pattern: durationPattern,
    reason(value) {
      if (typeof value === 'number' || (typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value)))
        return `must be ${bounds}, and its unit is missing: write ms, s, m, h or d behind the number`;
      if (typeof value !== 'string') return `must be ${bounds}, not ${kindOf(value)}`;
      return `must be ${bounds}, such as 250ms, 30s or 1h30m`;
    },
    isValid(value) {
      const ms = parseDuration(value);
      return ms !== undefined && ms >= minMs && ms <= maxMs;
    },
    ...about,
  });
  return Type.Decode(Object.assign(written, { unit: 'Ms' }), (value) => parseDuration(value) as Duration);
}

/** One of the given words, in capitals or not. */
export const oneOf = <const T extends string>(words: readonly T[], about: About = {}) =>
  Type.Unsafe<T>(Type.Enum([...words], { what: `one of ${words.join(', ')}`, ...about }));

export const listOf = <T extends TSchema>(
  item: T,
  { minItems = 0, maxItems = MAX_ITEMS, ...about }: About & { minItems?: number; maxItems?: number } = {},
): TArray<T> => Type.Array(item, { minItems, maxItems, ...about });

/** A list in which one item may stand without the list around it. */
export const oneOrMore = <T extends TSchema>(
  item: T,
  { minItems = 1, ...about }: About & { minItems?: number } = {},
) =>
  decoded(
    Type.Union([item, listOf(item, { minItems })], about),
    (value) => [value].flat() as StaticDecode<T>[],
  );

export const optional = <T extends TSchema>(node: T) => Type.Optional(node);

/** A map whose keys are all known. */
export const section = <P extends TProperties>(properties: P, about: About = {}) =>
  Type.Object(properties, { default: {}, ...about });

export const plainName = (about: About) =>
  text({
    what: '1 to 249 letters, digits, dots, hyphens or underscores',
    pattern: '^[\\w.-]{1,249}$',
    ...about,
  });

/** One more demand: the rule sees the value as it is in the code, with defaults, and the path for its words. */
export const withRule = <T extends TSchema>(
  node: T,
  rule: (value: InCode<StaticDecode<T>>, path: string) => Flaw | undefined,
): T => Object.assign(node, { rule });

/** What the value becomes in the code. */
export const decoded = <T extends TSchema, V>(
  node: T,
  decode: (value: InCode<StaticDecode<T>>) => V,
): TCodec<T, V> => Type.Decode(node, decode as never) as unknown as TCodec<T, V>;

export const isMap = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A value by its kind, for the words "must be …, not …". */
export function kindOf(value: unknown): string {
  if (value === null || value === undefined) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'string') return 'text';
  if (typeof value === 'number') return 'a number';
  return typeof value === 'boolean' ? 'true or false' : 'a map';
}

/** Suggestions in words; undefined when there are none. */
export const anyOf = (words: readonly string[]): string | undefined =>
  words.length === 0 ? undefined : words.join(' or ');

/** A key as it may stand in one line of an error message. */
export const printable = (key: string): string =>
  key.slice(0, 80).replaceAll(/\p{Cc}|\p{Zl}|\p{Zp}/gu, '\uFFFD');
