import { isUtf8 } from 'node:buffer';
import { dimensions, type Dimension } from '../access/scope.ts';
import { compileGlobs } from '../glob/match-glob.ts';
import { compilePaths, readFieldPath, strongest, type Place } from './field-paths.ts';
import { createCover, MASK, type Cover } from './mask.ts';
import { growsTooMuch, isJson, maskJson, type LeafMask } from './mask-json.ts';
import { builtInPatterns, compilePattern, maskMatches, type Pattern } from './patterns.ts';
import { namedValuesIn, type NamedValues } from './named-values.ts';
import type { ProtectAction, ProtectRule } from './protect-rule.ts';

/**
 * What must not be shown, as `protect.rules` says. Whoever presents an item asks for the masks of its name and shows
 * nothing that has not been through them:
 *
 *   const masks = protection.of('topics', [message.originalTopic]);
 *   return { error_message: masks.text(message.errorMessage) };
 *
 * What cannot be understood is covered as a whole: a value that is no JSON where fields are protected, a value that is
 * no text where patterns are, and what is behind the first 64 kB in which patterns are looked for.
 */
export type Protection = Readonly<{
  /** For an item that has these names. */
  of: (dimension: Dimension, names: readonly (string | null)[]) => Masks;
  /** For what was made of many items: every rule that is for some name of the dimension. */
  ofAny: (dimension: Dimension) => Masks;
  /** Every rule, for texts of which it is not known to what they belong. */
  ofEverything: () => Masks;
}>;

export type Masks = Readonly<{
  /** Nothing is protected. */
  isEmpty: boolean;
  /** Message keys are protected, or what they say may be. */
  protectsKeys: boolean;
  /** What errors and other texts say may be protected. */
  protectsTexts: boolean;
  /** JSON text, to JSON text. */
  json: (text: string) => string;
  /** The bytes of a value. Unchanged ones are the same object. */
  value: (bytes: Buffer) => Buffer;
  /** The beginning of a value of which this is not all: text that can be shown, or null for what is no text. */
  start: (bytes: Buffer) => string | null;
  /** An error, a stack, a reason. */
  text: <Text extends string | null>(text: Text) => Text;
  /** Undefined where the header is left out. */
  header: (name: string, value: Buffer | null) => Readonly<{ value: Buffer | null }> | undefined;
  key: (bytes: Buffer) => Buffer;
  /** A key that is text: of a deduplication, of idempotency, of an order among others, of a correlation. */
  keyText: <Text extends string | null>(text: Text) => Text;
  /** The same masks for somebody who may see no payload at all. */
  withoutPayload: () => Masks;
}>;

export type ProtectionSettings = Readonly<{
  rules: readonly ProtectRule[];
  /** Expressions of RE2 by name, besides the built-in patterns. */
  patterns: Readonly<Record<string, string>>;
  /** For hashes. */
  hashKey: (() => string) | null;
}>;

/** In how many characters of a document or text patterns are looked for. */
export const searchedChars = 65_536;
/** What is shown ends so far before the end of what was searched, so that no match reaches across it. */
export const longestMatch = 1024;
const rememberedNames = 1000;

export function createProtection({ rules, patterns, hashKey }: ProtectionSettings): Protection {
  const cover = createCover(hashKey);
  const known = new Map<string, Pattern>(Object.entries(builtInPatterns));
  for (const [name, expression] of Object.entries(patterns)) known.set(name, compilePattern(expression));
  const compiled = rules.map((rule) => ({ rule, isFor: matcherOf(rule) }));
  const masksOf = remembered((chosen: string) =>
    createMasks(
      compiled.filter((_, index) => chosen[index] === '1').map(({ rule }) => rule),
      known,
      cover,
    ),
  );
  const choose = (isChosen: (rule: (typeof compiled)[number]) => boolean): Masks =>
    masksOf(compiled.map((each) => (isChosen(each) ? '1' : '0')).join(''));
  const chosenFor = remembered((asked: string) => {
    const [dimension, ...names] = JSON.parse(asked) as [Dimension, ...string[]];
    return choose(({ isFor }) => isFor(dimension, names));
  });
  return {
    of: (dimension, names) =>
      chosenFor(JSON.stringify([dimension, ...names.filter((name) => name !== null)])),
    ofAny: (dimension) => choose(({ rule }) => isGeneral(rule) || rule.names[dimension] !== undefined),
    ofEverything: () => choose(() => true),
  };
}

function isGeneral({ names }: ProtectRule): boolean {
  return dimensions.every((dimension) => names[dimension] === undefined);
}

function matcherOf(rule: ProtectRule): (dimension: Dimension, names: readonly string[]) => boolean {
  if (isGeneral(rule)) return () => true;
  const globs = new Map(
    dimensions.flatMap((dimension) => {
      const patterns = rule.names[dimension];
      return patterns === undefined ? [] : [[dimension, compileGlobs(patterns)] as const];
    }),
  );
  return (dimension, names) => {
    const matches = globs.get(dimension);
    return matches !== undefined && names.some(matches);
  };
}

/** The last answers of a function. */
function remembered<Value>(make: (key: string) => Value): (key: string) => Value {
  const values = new Map<string, Value>();
  return (key) => {
    const found = values.get(key);
    if (found !== undefined) return found;
    if (values.size >= rememberedNames) values.clear();
    const made = make(key);
    values.set(key, made);
    return made;
  };
}

function createMasks(
  rules: readonly ProtectRule[],
  known: ReadonlyMap<string, Pattern>,
  cover: Cover,
): Masks {
  const paths = rules.flatMap(({ fields, action }) => fields.map((path) => ({ path, action })));
  const place = compilePaths(paths);
  const searched = rules.flatMap(({ patterns, action }) =>
    patterns.flatMap((name) => {
      const pattern = known.get(name);
      return pattern === undefined ? [] : [{ pattern, action }];
    }),
  );
  const headers = rules.flatMap(({ headers: globs, action }) =>
    globs.length === 0 ? [] : [{ matches: compileGlobs(globs.map((glob) => glob.toLowerCase())), action }],
  );
  const keyAction = rules.reduce<ProtectAction | null>(
    (action, rule) => (rule.key ? strongest(action, rule.action) : action),
    null,
  );
  const named = namedValuesIn(paths.flatMap(({ path }) => readFieldPath(path)?.at(-1) ?? []));
  const parts: Parts = { cover, place, hasFields: paths.length > 0, searched, named, headers, keyAction };
  return rules.length === 0 ? noMasks : masksOf(parts);
}

type Parts = Readonly<{
  cover: Cover;
  place: Place;
  hasFields: boolean;
  searched: readonly Readonly<{ pattern: Pattern; action: ProtectAction }>[];
  /** Covers the values of protected fields that a text quotes; null if no field has a name of its own. */
  named: NamedValues | null;
  headers: readonly Readonly<{ matches: (name: string) => boolean; action: ProtectAction }>[];
  keyAction: ProtectAction | null;
}>;

function masksOf(parts: Parts): Masks {
  const { cover, headers, keyAction, searched, named } = parts;
  const protectsTexts = searched.length > 0 || named !== null;
  const text = (shown: string): string => search(parts, shown, named);
  const keyText = (shown: string): string => (keyAction === null ? text(shown) : cover(shown, keyAction));
  const bytes = (value: Buffer): Buffer => coverBytes(value, text, searched.length > 0);
  const coverWhole = (value: Buffer, action: ProtectAction): Buffer =>
    unlessSame(value, cover(value.toString('latin1'), action));
  const masks: Masks = {
    isEmpty: false,
    protectsKeys: keyAction !== null || protectsTexts,
    protectsTexts,
    json: (document) =>
      maskJson(document, parts.place, leafMask(parts, document))?.text ?? JSON.stringify(MASK),
    value: (value) => maskValue(parts, value),
    start: (value) => maskStart(parts, value),
    text: (shown) => (shown === null ? shown : (text(shown) as typeof shown)),
    header(name, value) {
      const lower = name.toLowerCase();
      const action = headers
        .filter(({ matches }) => matches(lower))
        .reduce<ProtectAction | null>((one, other) => strongest(one, other.action), null);
      if (action === 'drop') return undefined;
      if (value === null) return { value };
      return { value: action === null ? bytes(value) : coverWhole(value, action) };
    },
    key: (key) => (keyAction === null ? bytes(key) : coverWhole(key, keyAction)),
    keyText: (shown) => (shown === null ? shown : (keyText(shown) as typeof shown)),
    withoutPayload: () => hidePayload(masks),
  };
  return masks;
}

/**
 * Patterns are looked for in the first characters of all texts of the document together, and in those of its names;
 * texts may quote protected fields as well.
 */
function leafMask({ cover, searched, named }: Parts, document: string): LeafMask {
  const inQuoted = named ?? ((text: string) => text);
  if (searched.length === 0) return { cover, inText: inQuoted, inName: (name) => name };
  // As it is written, unless characters are escaped.
  const possible = document.includes('\\')
    ? searched
    : searched.filter(({ pattern }) => pattern.mayMatch(document));
  const within = (): ((text: string) => string) => {
    let left = searchedChars;
    return (text) => {
      left -= text.length;
      return left < 0 ? MASK : maskMatches(text, possible, cover);
    };
  };
  const inNewName = within();
  const inNewText = within();
  const names = new Map<string, string>();
  return {
    cover,
    inText: (text) => inNewText(inQuoted(text)),
    inName(name) {
      const shown = names.get(name) ?? inNewName(name);
      names.set(name, shown);
      return shown;
    },
  };
}

function maskValue(parts: Parts, value: Buffer): Buffer {
  if (value.length === 0) return value;
  const { hasFields, searched } = parts;
  const text = isUtf8(value) ? value.toString('utf8') : null;
  if (text !== null && isJson(text)) {
    const masked = maskJson(text, parts.place, leafMask(parts, text));
    if (masked === null) return unlessSame(value, MASK);
    return masked.isChanged ? Buffer.from(masked.text) : value;
  }
  if (hasFields || (text === null && searched.length > 0)) return unlessSame(value, MASK);
  return text === null ? value : coverBytes(value, (shown) => search(parts, shown), false);
}

/** What is a mask already is the same object, as everything that is not covered. */
function unlessSame(value: Buffer, shown: string): Buffer {
  const bytes = Buffer.from(shown);
  return bytes.equals(value) ? value : bytes;
}

/** Patterns and names are looked for in the first characters; what is behind them is covered. */
function search({ searched, cover }: Parts, text: string, named: NamedValues | null = null): string {
  if (searched.length === 0 && named === null) return text;
  const within = (part: string): string => maskMatches(named?.(part) ?? part, searched, cover);
  const shown =
    text.length <= searchedChars ? within(text) : withoutEnd(within(text.slice(0, searchedChars))) + MASK;
  return growsTooMuch(text, shown.length) ? MASK : shown;
}

/** Without what may be the beginning of a match: it is shown as it was, so it is as long as a match at most. */
function withoutEnd(shown: string): string {
  return shown.slice(0, Math.max(0, shown.length - longestMatch));
}

/**
 * The beginning of a text of which `longestMatch` more characters were read than are shown, unless it ended before: so a
 * match at the end of what is shown is whole when it is looked for.
 */
export function maskBeginning<Text extends string | null>(
  masks: Masks,
  text: Text,
  shownChars: number,
): Text {
  if (text === null) return text;
  const isCut = text.length >= shownChars + longestMatch;
  const shown = masks.text<string>(text);
  return (isCut && !masks.isEmpty ? withoutEnd(shown) : shown).slice(0, shownChars) as Text;
}

/** The value in which it ends is left out. Of what is no JSON nothing is shown unless the beginnings of matches match. */
function maskStart(parts: Parts, value: Buffer): string | null {
  const { hasFields, searched, cover } = parts;
  const text = value.toString('utf8').replace(/\uFFFD{1,3}$/, '');
  const masked = maskJson(text, parts.place, leafMask(parts, text));
  if (masked !== null) return masked.text;
  if (hasFields || searched.some(({ pattern }) => !pattern.isBounded)) return MASK;
  if (/[\uFFFD\0]/.test(text)) return searched.length > 0 ? MASK : null;
  return maskMatches(text, searched, cover);
}

/** What is no text is covered as a whole if its text has a match. */
function coverBytes(bytes: Buffer, change: (text: string) => string, hasPatterns: boolean): Buffer {
  const text = bytes.toString('utf8');
  if (!hasPatterns && !isUtf8(bytes)) return bytes;
  const shown = change(text);
  if (shown === text) return bytes;
  return Buffer.from(isUtf8(bytes) ? shown : MASK);
}

/** For what is revealed. */
export const noMasks: Masks = {
  isEmpty: true,
  protectsKeys: false,
  protectsTexts: false,
  json: (text) => text,
  value: (bytes) => bytes,
  start: (bytes) => bytes.toString('utf8'),
  text: (text) => text,
  header: (_, value) => ({ value }),
  key: (bytes) => bytes,
  keyText: (text) => text,
  withoutPayload: () => hidePayload(noMasks),
};

/** Errors and names are shown as the rules say, and payloads not at all. */
function hidePayload(masks: Masks): Masks {
  const hidden: Masks = {
    ...masks,
    isEmpty: false,
    json: () => JSON.stringify(MASK),
    value: () => Buffer.from(MASK),
    start: () => MASK,
    header(name, value) {
      const shown = masks.header(name, value);
      return shown === undefined || shown.value === null ? shown : { value: Buffer.from(MASK) };
    },
    withoutPayload: () => hidden,
  };
  return hidden;
}
