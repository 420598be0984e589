import type { Queryable } from '../../../platform/postgres/database.ts';
import { sql } from '../../../platform/postgres/sql.ts';
import { ok, problem, type Finding } from '../finding.ts';

/** What a CREATE INDEX CONCURRENTLY leaves behind that did not end: it costs every write, and no query uses it. */
export async function examineIndexes(db: Queryable, schemas: readonly string[]): Promise<Finding> {
  const invalid = await db.query<{ name: string }>(sql`
    SELECT format('%I.%I', n.nspname, c.relname) AS name
    FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = ANY (${schemas}::text[]) AND NOT (i.indisvalid AND i.indisready)
    ORDER BY 1`);
  if (invalid.length === 0) return ok('indexes', 'all valid');
  return problem(
    'indexes',
    `invalid: ${invalid.map(({ name }) => name).join(', ')}`,
    invalid.map(({ name }) => `REINDEX INDEX CONCURRENTLY ${name};`).join(' '),
  );
}
