/**
 * The statements of a migration, without comments. Knows quotes and dollar quotes, which may contain semicolons; a string
 * with escapes (`E'…\'…'`) does not occur in migrations.
 */
export function splitStatements(text: string): readonly string[] {
  const statements: string[] = [];
  let current = '';
  for (const token of text.match(tokens) ?? []) {
    if (token.startsWith('--') || token.startsWith('/*')) current += ' ';
    else if (token === ';') {
      statements.push(current);
      current = '';
    } else current += token;
  }
  return [...statements, current].map((one) => one.trim()).filter((one) => one !== '');
}

/** Comments, quoted names, strings, dollar-quoted strings, semicolons, and everything between. */
const tokens =
  /--[^\n]*|\/\*[\s\S]*?\*\/|"(?:[^"]|"")*"|'(?:[^']|'')*'|\$(?<tag>\w*)\$[\s\S]*?\$\k<tag>\$|;|[^-/"'$;]+|[-/"'$]/g;
