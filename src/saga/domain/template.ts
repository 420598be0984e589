/**
 * References in a text: `${input.sku}`, `${steps.reserve.id}`, `${own.id}`. A path and nothing else, no code.
 *
 * A path begins with what it looks into: `input` is the saga's payload, `steps.<name>` the answer of an earlier step,
 * `own` the answer of the step that is being undone. Then come names and positions: `.sku`, `.items.0.sku`, and
 * `["any text"]` where a name has other characters than letters, digits, `_`, `$` and `-`; `[0]` is read as `.0`.
 *
 * Of the dollars that stand directly before a brace each two are one dollar: `$${x}` is the text `${x}`, and in
 * `$$${input.x}` a dollar stands before the reference. So every text can be written.
 */
export type Reference =
  | Readonly<{ root: 'input' | 'own'; path: readonly string[] }>
  | Readonly<{ root: 'steps'; step: string; path: readonly string[] }>;

/** What a text is made of, in order; no two texts stand side by side, and none is empty. */
export type Template = readonly (string | Reference)[];

export type ParsedTemplate =
  | Readonly<{ ok: true; template: Template }>
  | Readonly<{ ok: false; message: string }>;

const PLAIN_NAME = /^[\p{L}\p{M}\p{N}_$-]+$/u;
const INSIDE =
  /^\s*(?<root>[\p{L}\p{M}\p{N}_$-]*)(?<path>(?:\.[\p{L}\p{M}\p{N}_$-]+|\[\d{1,9}\]|\["(?:[^"\\]|\\.)*"\])*)\s*$/u;
const SEGMENT = /\.(?<name>[\p{L}\p{M}\p{N}_$-]+)|\[(?<index>\d+)\]|\[(?<quoted>"(?:[^"\\]|\\.)*")\]/gu;

/** Deeper than any answer is stored. */
const MAX_PATH = 512;

export function parseTemplate(text: string): ParsedTemplate {
  const parts: (string | Reference)[] = [];
  let literal = '';
  let at = 0;
  for (;;) {
    const brace = text.indexOf('${', at);
    if (brace === -1) break;
    // All dollars of the run: `indexOf` finds the last of them.
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
    if (end === -1) return { ok: false, message: `has a reference without its end: ${excerpt(text, brace)}` };
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

/** The one text of a template: what `parseTemplate` reads as it. */
export function printTemplate(template: Template): string {
  return template
    .map((part, index) => {
      if (typeof part !== 'string') return printReference(part);
      const escaped = part.replaceAll(/\$+(?=\{)/g, (dollars) => dollars + dollars);
      // A dollar at the end would join those of the reference behind it.
      return index === template.length - 1
        ? escaped
        : escaped.replace(/\$+$/, (dollars) => dollars + dollars);
    })
    .join('');
}

export function printReference(reference: Reference): string {
  return `\${${pathText(reference)}}`;
}

/** As it stands between the braces: `steps.reserve.id`. */
export function pathText(reference: Reference): string {
  const keys = reference.root === 'steps' ? [reference.step, ...reference.path] : reference.path;
  return keys.reduce(
    (text, key) => text + (PLAIN_NAME.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`),
    reference.root as string,
  );
}

/** The brace that closes it; one inside quotes does not. */
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
    return { message: `has a reference that is no path: ${excerpt(`\${${inside}}`)}` };
  const path: string[] = [];
  for (const { groups } of tail.matchAll(SEGMENT)) {
    const key = groups?.['name'] ?? groups?.['index'] ?? unquote(groups?.['quoted'] ?? '');
    if (key === undefined || !key.isWellFormed())
      return { message: `has a reference with a name that is no JSON string: ${excerpt(`\${${inside}}`)}` };
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
