import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Database } from '../../src/platform/postgres/database.ts';
import { Sql, sql } from '../../src/platform/postgres/sql.ts';

/** A file of master keys that a test changes while a system uses it. */
export type MasterKeyFile = Readonly<{
  path: string;
  write(...keys: readonly string[]): void;
  read(): string;
}>;

export function createMasterKeyFile(...keys: readonly string[]): MasterKeyFile {
  const path = join(mkdtempSync(join(tmpdir(), 'redrive-keys-')), 'master-keys');
  const write = (...lines: readonly string[]): void =>
    writeFileSync(path, lines.map((line) => `${line}\n`).join(''), { mode: 0o600 });
  write(...keys);
  return { path, write, read: () => readFileSync(path, 'utf8').trim() };
}

export const newMasterKey = (name: string): string => `${name}:${randomBytes(32).toString('base64')}`;

type Column = Readonly<{ schema: string; table: string }>;

/** The tables of the database that have one of the texts anywhere: as text, as bytes, or encoded in Base64. */
export async function tablesWith(db: Database, texts: readonly string[]): Promise<readonly string[]> {
  const tables = await db.query<Column>(sql`
    SELECT n.nspname AS schema, c.relname AS table FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'm') AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND n.nspname !~ '^pg_'
    ORDER BY 1, 2`);
  const forms = texts.flatMap(formsOf).map((form) => `%${form.toLowerCase()}%`);
  const found: string[] = [];
  for (const { schema, table } of tables) {
    const rows = await db.query(
      new Sql(
        [`SELECT 1 FROM "${schema}"."${table}" AS t WHERE lower(t::text) LIKE ANY(`, '::text[]) LIMIT 1'],
        [forms],
      ),
    );
    if (rows.length > 0) found.push(`${schema}.${table}`);
  }
  return found;
}

/** Base64 of a text depends on where it begins in the bytes, so three forms of its middle are looked for. */
function formsOf(text: string): readonly string[] {
  const bytes = Buffer.from(text);
  const base64 = [0, 1, 2].map((shift) =>
    Buffer.concat([Buffer.alloc(shift), bytes])
      .toString('base64')
      .slice(4, -4),
  );
  return [text, bytes.toString('hex'), ...base64];
}
