/** Limits on how much of a message is read, and how much of its template is kept. */
const MESSAGE_MAX_LENGTH = 2048;
const TEMPLATE_MAX_LENGTH = 512;

/**
 * An error message with its variable parts replaced, so that the same failure has the same template for different
 * messages: `order 4711 of ann@shop.example is locked` becomes `order <n> of <email> is locked`. Linear in the length of
 * the message.
 */
export function templateOf(message: string): string {
  const input = message.length > MESSAGE_MAX_LENGTH ? message.slice(0, MESSAGE_MAX_LENGTH) : message;
  // Closing quotes that the rest of the message does not have, so that they are not searched for again.
  const missing = new Set<string>();
  let template = '';
  let at = 0;
  while (at < input.length && template.length < TEMPLATE_MAX_LENGTH) {
    const wordEnd = endOfWord(input, at);
    const dumpEnd = wordEnd > at ? at : endOfDump(input, at);
    const quoteEnd = Math.max(wordEnd, dumpEnd) > at ? at : endOfQuoted(input, at, missing);
    if (wordEnd > at) template += maskWord(input.slice(at, wordEnd));
    else if (dumpEnd > at) template += `${input[at] ?? ''}<fields>${CLOSING_BRACKET[input[at] ?? ''] ?? ''}`;
    else if (quoteEnd > at) template += maskQuoted(template, input.slice(at, quoteEnd));
    else template += input[at] ?? '';
    at = Math.max(wordEnd, dumpEnd, quoteEnd, at + 1);
  }
  return tidy(template);
}

/** Collapses lists to one item and dates to one word, drops signs of numbers, and ends URLs at a blank. */
function tidy(template: string): string {
  return template
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/<url>[^\s"'`),;]+/g, '<url>')
    .replaceAll(/(?<![\w>])[-+](?=<n>)/g, '')
    .replaceAll(/\[<address>\](?::<n>)?/g, '<address>')
    .replaceAll(WRITTEN_DATE, '<time>')
    .replaceAll(/<time>(?:[, ]{1,2}(?:<time>|<n>|AM|PM|[AP]\.M\.|UTC|GMT|Z)(?![\w]))+/g, '<time>')
    .replaceAll(/<(\w+)>(?:[.,] ?<\1>)+/g, '<$1>')
    .slice(0, TEMPLATE_MAX_LENGTH)
    .trim()
    .toWellFormed();
}

/** `Fri, 20 Feb 2026`, `Feb 20, 2026`, `20/Feb/<n>:<n>`: the numbers are masked already. */
const WRITTEN_DATE =
  /(?:\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]{0,6},? )?(?:<n>[ /-](?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6}|\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]{0,6} <n>)(?!\w)[,/-]?(?: ?<n>(?::<n>)*)?/g;

/**
 * The position after a printed object: `{"id": 1, …}`, `Order{id=1, …}`, `Order(id=1, …)`, `&{ID:1 …}`. Which fields it has,
 * and their values, depend on the message. PostgreSQL writes values as `Key (id)=(4711)`.
 */
function endOfDump(input: string, open: number): number {
  const opening = input[open] ?? '';
  if (CLOSING_BRACKET[opening] === undefined) return open;
  const begin = input.slice(open + 1, open + 65);
  const isDump =
    (opening === '{' && /^\s{0,8}(?:["']|[A-Za-z_]\w*[:=])/.test(begin)) ||
    (opening !== '{' && isWordCharacter(input[open - 1]) && /^[A-Za-z_]\w*=/.test(begin)) ||
    (opening === '(' && input[open - 1] === '=');
  return isDump ? endOfNested(input, open) : open;
}

/** A truncated object ends with the message. */
function endOfNested(input: string, open: number): number {
  let depth = 0;
  for (let at = open; at < input.length; at += 1) {
    if (CLOSING_BRACKET[input[at] ?? ''] !== undefined) depth += 1;
    else if (')]}'.includes(input[at] ?? ' ')) depth -= 1;
    if (depth === 0) return at + 1;
  }
  return input.length;
}

const CLOSING_BRACKET: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' };

/**
 * What is quoted is a value, unless the word before it says that it names a part of the program or the schema:
 * `column "email"` and `column "phone"` are two causes, `user "ann"` and `user "bob"` are one.
 */
function maskQuoted(before: string, quoted: string): string {
  const content = quoted.slice(1, -1);
  const isName = /^[A-Za-z_$][\w$.]{0,127}$/.test(content) && NAMED_THING.test(before.slice(-20));
  return `${quoted[0] ?? ''}${isName ? maskWord(content) : '<text>'}${quoted.at(-1) ?? ''}`;
}

const NAMED_THING =
  /\b(?:column|relation|table|constraint|property|field|attribute|function|method|module|parameter|argument|reading|setting|index) $/i;

const CLOSING_QUOTE: Readonly<Record<string, string>> = {
  '"': '"',
  "'": "'",
  '`': '`',
  '“': '”',
  '‘': '’',
  '«': '»',
  '「': '」',
};

/** The position after the closing quote, or `open` if nothing is quoted here: `can't` has an apostrophe, not a quote. */
function endOfQuoted(input: string, open: number, missing: Set<string>): number {
  const closing = CLOSING_QUOTE[input[open] ?? ''];
  if (closing === undefined || missing.has(closing)) return open;
  // A quoted object has quotes inside; a lone bracket has not.
  const dumpEnd = endOfDump(input, open + 1);
  const close = input[dumpEnd] === closing ? dumpEnd : input.indexOf(closing, open + 1);
  if (close < 0) {
    missing.add(closing);
    return open;
  }
  const isApostrophe =
    closing === "'" && (isWordCharacter(input[open - 1]) || isWordCharacter(input[close + 1]));
  return isApostrophe ? open : close + 1;
}

function isWordCharacter(character: string | undefined): boolean {
  return character !== undefined && /\w/.test(character);
}

function endOfWord(input: string, start: number): number {
  let at = start;
  while (at < input.length && !isDelimiter(input.charCodeAt(at))) at += 1;
  return at;
}

function isDelimiter(unit: number): boolean {
  return unit < 128 ? ASCII_DELIMITERS[unit] === 1 : WIDE_DELIMITERS.has(unit);
}

const ASCII_DELIMITERS = Uint8Array.from({ length: 128 }, (_, unit) =>
  unit <= 0x20 || '()[]{}<>,;=|"\'`'.includes(String.fromCharCode(unit)) ? 1 : 0,
);

const WIDE_DELIMITERS: ReadonlySet<number> = new Set(
  Array.from('\u00a0\u3000“”‘’«»「」', (character) => character.charCodeAt(0)),
);

function maskWord(word: string): string {
  if (!/[\d@]|:\/\//.test(word)) return word;
  if (word.includes('://')) return '<url>';
  const end = endOfCore(word);
  const core = word.slice(0, end).replaceAll(UUID, '<uuid>');
  return maskCore(core) + word.slice(end);
}

const UUID = /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/gi;

/** Where the punctuation after the word begins. */
function endOfCore(word: string): number {
  let end = word.length;
  while (end > 0 && '.:!?'.includes(word[end - 1] ?? ' ')) end -= 1;
  return end;
}

const FORMS: readonly (readonly [RegExp, string])[] = [
  [/^[^@]+@[^@]+\.[A-Za-z\d-]+$/, '<email>'],
  [/^\d{4}-\d\d-\d\d(?:[T_].*)?$/, '<time>'],
  [/^\d\d?[/-][A-Z][a-z]{2}[/-]\d{4}(?::\d\d){0,3}$/, '<time>'],
  [/^\d\d?:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?$/, '<time>'],
  [/^[-+]?\d[\d_]*(?:\.\d+)?(?:e[-+]?\d+)?%?$/i, '<n>'],
  [/^[-+]?(?:\d+(?:\.\d+)?(?:ns|us|µs|μs|ms|s|sec|m|min|h|d))+$/, '<duration>'],
  [/^P(?:\d+D)?T(?:\d+(?:\.\d+)?[HMS])+$/, '<duration>'],
  [/^\d+(?:\.\d+)?(?:B|[kKMGT]i?B)$/, '<size>'],
  [/^\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?$/, '<address>'],
  [/^[A-Za-z\d-]+(?:\.[A-Za-z\d-]+)+:\d+$/, '<address>'],
  [/^(?=[^:]*:[^:]*:)[\dA-Fa-f:]+$/, '<address>'],
];

function maskCore(core: string): string {
  const form = FORMS.find(([pattern]) => pattern.test(core));
  if (form !== undefined) return form[1];
  if (core.includes('/')) return core.split('/').map(maskWord).join('/');
  return core.replace(OBJECT_HASH, '@<id>').replaceAll(/[A-Za-z\d]+/g, maskAtom);
}

/** Java's default `toString`: `com.acme.Order@1b2c3d4`. */
const OBJECT_HASH = /@[\da-f]{1,8}$/;

function maskAtom(atom: string): string {
  if (/^\d+$/.test(atom)) return '<n>';
  if (!/\d/.test(atom)) return atom;
  const isId = /^0x/i.test(atom) || /^[\da-f]{8,}$/i.test(atom) || countChanges(atom) >= 3;
  return isId ? '<id>' : atom.replaceAll(/\d+/g, '<n>');
}

/** How often letters and digits alternate: once or twice in names (`sha256sum`), more often in random ids. */
function countChanges(atom: string): number {
  return atom.match(/\d(?=\D)|\D(?=\d)/g)?.length ?? 0;
}
