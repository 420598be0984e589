/**
 * The text of a filter box: terms with spaces between them. A term is `qualifier:value` or free text, and `-` before it
 * excludes. Values with spaces stand in quotation marks, in which `\` escapes. `printFilter` and `parseFilter` undo each
 * other, so that a filter can live in an address.
 */
export type Term = Readonly<{
  /** Null for free text. */
  qualifier: string | null;
  value: string;
  isExcluded: boolean;
}>;

export type Filter = readonly Term[];

/** A term and where it stands in the text. */
export type PlacedTerm = Readonly<{ term: Term; start: number; end: number; isUnclosed: boolean }>;

const qualifierPattern = /^[a-z][a-z_]*$/;

export function parseFilter(text: string): Filter {
  return placeTerms(text)
    .map(({ term }) => term)
    .filter((term) => term.qualifier !== null || term.value !== '');
}

export function placeTerms(text: string): readonly PlacedTerm[] {
  const found: PlacedTerm[] = [];
  for (let at = 0; at < text.length;) {
    if (isSpace(text[at])) {
      at += 1;
      continue;
    }
    const placed = readTerm(text, at);
    found.push(placed);
    at = placed.end;
  }
  return found;
}

function readTerm(text: string, start: number): PlacedTerm {
  const isExcluded = text[start] === '-';
  let at = isExcluded ? start + 1 : start;
  const colon = text.indexOf(':', at);
  const name = colon < 0 ? '' : text.slice(at, colon);
  const qualifier = qualifierPattern.test(name) ? name : null;
  if (qualifier !== null) at = colon + 1;
  const { value, end, isUnclosed } = text[at] === '"' ? readQuoted(text, at) : readBare(text, at);
  return { term: { qualifier, value, isExcluded }, start, end, isUnclosed };
}

function readBare(
  text: string,
  start: number,
): Readonly<{ value: string; end: number; isUnclosed: boolean }> {
  let end = start;
  while (end < text.length && !isSpace(text[end])) end += 1;
  return { value: text.slice(start, end), end, isUnclosed: false };
}

function readQuoted(
  text: string,
  start: number,
): Readonly<{ value: string; end: number; isUnclosed: boolean }> {
  let value = '';
  for (let at = start + 1; at < text.length; at += 1) {
    if (text[at] === '"') return { value, end: at + 1, isUnclosed: false };
    if (text[at] === '\\' && at + 1 < text.length) at += 1;
    value += text[at] ?? '';
  }
  return { value, end: text.length, isUnclosed: true };
}

export function printFilter(filter: Filter): string {
  return filter.map(printTerm).join(' ');
}

export function printTerm({ qualifier, value, isExcluded }: Term): string {
  const isPlain = /^[^\s"]+$/.test(value) && (qualifier !== null || !/^-|^[a-z][a-z_]*:/.test(value));
  const isNothing = value === '' && qualifier !== null;
  const shown = isPlain || isNothing ? value : `"${value.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
  return `${isExcluded ? '-' : ''}${qualifier === null ? '' : `${qualifier}:`}${shown}`;
}

export function isSameTerm(one: Term, other: Term): boolean {
  return (
    one.qualifier === other.qualifier && one.value === other.value && one.isExcluded === other.isExcluded
  );
}

function isSpace(character: string | undefined): boolean {
  return character !== undefined && /\s/.test(character);
}
