import { readTokens, type JsonProblem, type Token } from './tokens.ts';

export type Formatted =
  | Readonly<{ isJson: true; text: string; duplicateKeys: readonly string[] }>
  | Readonly<{ isJson: false; line: number; column: number; problem: JsonProblem }>;

const maxIndent = 40;

/** The same tokens with a line per member. Deep levels stop to indent, so that the text does not explode. */
export function formatJson(text: string): Formatted {
  const syntax = readTokens(text);
  if (!syntax.isValid) return { isJson: false, ...placeOf(text, syntax.at), problem: syntax.problem };
  return {
    isJson: true,
    text: indentTokens(syntax.tokens),
    duplicateKeys: findDuplicateKeys(syntax.tokens),
  };
}

function indentTokens(tokens: readonly Token[]): string {
  const parts: string[] = [];
  let depth = 0;
  const newLine = (): number => parts.push('\n', '  '.repeat(Math.min(depth, maxIndent)));
  tokens.forEach((token, i) => {
    const before = tokens[i - 1]?.kind;
    if (token.kind === 'close') {
      depth -= 1;
      if (before !== 'open') newLine();
    } else if (before === 'open' || before === 'comma') newLine();
    parts.push(token.text);
    if (token.kind === 'colon') parts.push(' ');
    if (token.kind === 'open') depth += 1;
  });
  return parts.join('');
}

/** Keys that occur twice in one object: most programs see only the last. */
function findDuplicateKeys(tokens: readonly Token[]): readonly string[] {
  const found = new Set<string>();
  const objects: Set<string>[] = [];
  tokens.forEach((token, i) => {
    if (token.kind === 'open') objects.push(new Set());
    if (token.kind === 'close') objects.pop();
    if (token.kind !== 'string' || tokens[i + 1]?.kind !== 'colon') return;
    const key = JSON.parse(token.text) as string;
    if (objects.at(-1)?.has(key) === true) found.add(key);
    objects.at(-1)?.add(key);
  });
  return [...found];
}

function placeOf(text: string, at: number): Readonly<{ line: number; column: number }> {
  const before = text.slice(0, at);
  const line = before.split('\n').length;
  return { line, column: at - before.lastIndexOf('\n') };
}
