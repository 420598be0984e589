import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Client } from 'pg';

const folder = fileURLToPath(new URL('../../deploy/', import.meta.url));

/** Runs a file below deploy/ as psql does: statement by statement, with its variables and `\gexec`. */
export async function runPsqlFile(
  client: Client,
  file: string,
  variables: Readonly<Record<string, string>> = {},
): Promise<readonly object[]> {
  const text = (await readFile(`${folder}${file}`, 'utf8')).replaceAll(/^--.*$/gm, '');
  const rows: object[] = [];
  for (const [, statement = '', end] of text.matchAll(/([^;\\]+)(;|\\gexec)/g)) {
    const filled = statement
      .replaceAll(/:"(\w+)"/g, (_all, name: string) => client.escapeIdentifier(variables[name] ?? ''))
      .replaceAll(/:'(\w+)'/g, (_all, name: string) => client.escapeLiteral(variables[name] ?? ''));
    const result = await client.query<Record<string, string>>({ text: filled });
    if (end === ';') rows.push(...result.rows);
    else for (const row of result.rows) await client.query(Object.values(row)[0] ?? '');
  }
  return rows;
}
