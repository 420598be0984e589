/**
 * References in a string: `${input.sku}`, `${steps.reserve.id}`, `${own.id}`. They are paths, not code.
 *
 * The root of a path is `input` (the saga's payload), `steps.<name>` (the response of an earlier step) or `own` (the
 * response of the step that is being undone). Keys and indexes follow: `.sku`, `.items.0.sku`, and `["any text"]` for
 * keys with characters other than letters, digits, `_`, `$` and `-`; `[0]` is the same as `.0`.
 *
 * Dollars directly before a brace are escaped by doubling: `$${x}` is the text `${x}`, and `$$${input.x}` is a dollar
 * followed by a reference.
 */
export type Reference =
  | Readonly<{ root: 'input' | 'own'; path: readonly string[] }>
  | Readonly<{ root: 'steps'; step: string; path: readonly string[] }>;

/** Literals and references in order; literals are not empty and never adjacent. */
export type Template = readonly (string | Reference)[];

export type ParsedTemplate =
  | Readonly<{ ok: true; template: Template }>
  | Readonly<{ ok: false; message: string }>;

const PLAIN_NAME = /^[\p{L}\p{M}\p{N}_$-]+$/u;
const INSIDE =
  /^\s*(?<root>[\p{L}\p{M}\p{N}_$-]*)(?<path>(?:\.[\p{L}\p{M}\p{N}_$-]+|\[\d{1,9}\]|\["(?:[^"\\]|\\.)*"\])*)\s*$/u;
const SEGMENT = /\.(?<name>[\p{L}\p{M}\p{N}_$-]+)|\[(?<index>\d+)\]|\[(?<quoted>"(?:[^"\\]|\\.)*")\]/gu;

/** Deeper than any stored response. */
const MAX_PATH = 512;

export function parseTemplate(text: string): ParsedTemplate {
  const parts: (string | Reference)[] = [];
  let literal = '';
  let at = 0;
  for (;;) {
    const brace = text.indexOf('${', at);
    if (brace === -1) break;
    // `indexOf` finds the last dollar of the run.
    let run = brace;
    while (run > at && text[run - 1] === '$') run -= 1;
    const dollars = brace - run + 1;
    literal += text.slice(at, run) + '$'.repeat(Math.floor(dollars / 2));
    at = brace + 2;
    if (dollars % 2 === 0) {
      literal += '{';
      continue;
    }
    const end = endOfReference(text, at);
    if (end === -1) return { ok: false, message: `has an unterminated reference: ${excerpt(text, brace)}` };
    const reference = parseReference(text.slice(at, end));
    if ('message' in reference) return { ok: false, ...reference };
    if (literal !== '') parts.push(literal);
    literal = '';
    parts.push(reference);
    at = end + 1;
  }
  literal += text.slice(at);
  if (literal !== '') parts.push(literal);
  return { ok: true, template: parts };
}

/** The canonical text of a template, which `parseTemplate` parses back to it. */
export function printTemplate(template: Template): string {
  return template
    .map((part, index) => {
      if (typeof part !== 'string') return printReference(part);
      const escaped = part.replaceAll(/\$+(?=\{)/g, (dollars) => dollars + dollars);
      // A trailing dollar would merge with that of the reference that follows.
      return index === template.length - 1
        ? escaped
        : escaped.replace(/\$+$/, (dollars) => dollars + dollars);
    })
    .join('');
}

export function printReference(reference: Reference): string {
  return `\${${pathText(reference)}}`;
}

/** The text between the braces: `steps.reserve.id`. */
export function pathText(reference: Reference): string {
  const keys = reference.root === 'steps' ? [reference.step, ...reference.path] : reference.path;
  return keys.reduce(
    (text, key) => text + (PLAIN_NAME.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`),
    reference.root as string,
  );
}

/** Finds the closing brace, ignoring quoted ones. */
function endOfReference(text: string, from: number): number {
  let isQuoted = false;
  for (let at = from; at < text.length; at += 1) {
    const character = text[at];
    if (isQuoted && character === '\\') at += 1;
    else if (character === '"') isQuoted = !isQuoted;
    else if (character === '}' && !isQuoted) return at;
  }
  return -1;
}

type Unread = Readonly<{ message: string }>;

function parseReference(inside: string): Reference | Unread {
  const match = INSIDE.exec(inside);
  const { root = '', path: tail = '' } = match?.groups ?? {};
  if (match === null || root === '')
    return { message: `has a reference that is not a path: ${excerpt(`\${${inside}}`)}` };
  const path: string[] = [];
  for (const { groups } of tail.matchAll(SEGMENT)) {
    const key = groups?.['name'] ?? groups?.['index'] ?? unquote(groups?.['quoted'] ?? '');
    if (key === undefined || !key.isWellFormed())
      return {
        message: `has a reference with a name that is not a JSON string: ${excerpt(`\${${inside}}`)}`,
      };
    path.push(key);
  }
  if (path.length > MAX_PATH) return { message: `has a reference with more than ${MAX_PATH} names` };
  if (root === 'input' || root === 'own') return { root, path };
  if (root !== 'steps')
    return { message: `refers to ${excerpt(root)}: a path begins with input, steps or own` };
  const [step, ...rest] = path;
  if (step === undefined) return { message: 'refers to steps without a name: write ${steps.<name>…}' };
  return { root, step, path: rest };
}

function unquote(text: string): string | undefined {
  try {
    return JSON.parse(text) as string;
  } catch {
    return undefined;
  }
}

const EXCERPT = 60;

function excerpt(text: string, from = 0): string {
  const part = text.slice(from, from + EXCERPT).toWellFormed();
  return text.length - from > EXCERPT ? `${part}…` : part;
}
