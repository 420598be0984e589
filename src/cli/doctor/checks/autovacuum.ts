import type { Queryable } from '../../../platform/postgres/database.ts';
import { sql } from '../../../platform/postgres/sql.ts';
import { ok, problem, type Finding } from '../finding.ts';

/** Claims update rows all the time: without autovacuum every claim becomes slower by the hour. */
export async function examineAutovacuum(db: Queryable, schemas: readonly string[]): Promise<Finding> {
  const [server] = await db.query<{ isOn: boolean }>(sql`
    SELECT current_setting('autovacuum')::boolean AND current_setting('track_counts')::boolean AS "isOn"`);
  if (server?.isOn !== true)
    return problem(
      'autovacuum',
      'autovacuum or track_counts is off',
      'set both to on in postgresql.conf: Redrive slows down without them',
    );
  const off = await db.query<{ name: string }>(sql`
    SELECT format('%I.%I', n.nspname, c.relname) AS name
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = ANY (${schemas}::text[])
      AND EXISTS (SELECT FROM pg_options_to_table(c.reloptions) o
                  WHERE o.option_name = 'autovacuum_enabled' AND NOT o.option_value::boolean)
    ORDER BY 1`);
  if (off.length === 0) return ok('autovacuum', 'on');
  return problem(
    'autovacuum',
    `off for ${off.map(({ name }) => name).join(', ')}`,
    off.map(({ name }) => `ALTER TABLE ${name} RESET (autovacuum_enabled);`).join(' '),
  );
}
