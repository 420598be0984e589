import type { Queryable } from '../../../platform/postgres/database.ts';
import { sql } from '../../../platform/postgres/sql.ts';
import { ok, warning, type Finding } from '../finding.ts';

/** A table that changes all the time has some; many more than live ones mean that vacuum cannot remove them. */
const tolerated = 50_000;

export async function examineDeadRows(db: Queryable, schemas: readonly string[]): Promise<Finding> {
  const rows = await db.query<TableRows>(sql`
    SELECT format('%I.%I', schemaname, relname) AS name, n_live_tup::float8 AS live, n_dead_tup::float8 AS dead
    FROM pg_stat_user_tables
    WHERE schemaname = ANY (${schemas}::text[]) AND n_dead_tup > ${tolerated}::int8
    ORDER BY n_dead_tup DESC`);
  return judgeDeadRows(rows);
}

type TableRows = Readonly<{ name: string; live: number; dead: number }>;

export function judgeDeadRows(tables: readonly TableRows[]): Finding {
  const bloated = tables.filter(({ live, dead }) => dead > Math.max(tolerated, live));
  if (bloated.length === 0) return ok('dead_rows', 'vacuum keeps up');
  return warning(
    'dead_rows',
    bloated.map(({ name, live, dead }) => `${name} has ${dead} dead rows and ${live} live ones`).join(', '),
    `end long transactions and unused replication slots, then run ${bloated.map(({ name }) => `VACUUM ${name};`).join(' ')}`,
  );
}
