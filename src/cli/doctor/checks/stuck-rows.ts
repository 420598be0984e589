import type { Queryable } from '../../../platform/postgres/database.ts';
import { Sql, sql } from '../../../platform/postgres/sql.ts';
import { ok, warning, type Finding } from '../finding.ts';

/** Reapers release an expired lease within seconds. */
const expiredFor = '5 minutes';
const countTo = 1000;

/** The status of work in progress, by which an index finds it. Other tables with leases are small, or have an index on them. */
const working: Readonly<Record<string, string>> = {
  'dlq.dlq_messages': "status = 'RETRYING' AND",
  'outbox.outbox_orders': "status = 'sending' AND",
  'jobs.job_queue': "status = 'running' AND",
};

export function countExpired(table: string): Sql {
  const text = `SELECT count(*)::int AS count FROM (
     SELECT 1 FROM ${table}
     WHERE ${working[table] ?? ''} lease_owner IS NOT NULL AND lease_until < clock_timestamp() - interval '${expiredFor}'
     LIMIT ${countTo}) AS expired`;
  return new Sql([text], []);
}

/** Work whose lease expired, and that no process releases. */
export async function examineStuckRows(db: Queryable, schemas: readonly string[]): Promise<Finding> {
  const tables = await db.query<{ name: string }>(sql`
    SELECT format('%I.%I', n.nspname, c.relname) AS name
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = ANY (${schemas}::text[]) AND n.nspname <> 'platform' AND c.relkind = 'r'
      AND c.relname NOT LIKE '%\\_archive'
      AND (SELECT count(*) FROM pg_attribute a
           WHERE a.attrelid = c.oid AND a.attname IN ('lease_owner', 'lease_until')) = 2
    ORDER BY 1`);
  const stuck: string[] = [];
  for (const { name } of tables) {
    const [row] = await db.query<{ count: number }>(countExpired(name));
    if (row !== undefined && row.count > 0)
      stuck.push(`${row.count}${row.count === countTo ? ' or more' : ''} of ${name}`);
  }
  if (stuck.length === 0) return ok('stuck_rows', `no lease expired more than ${expiredFor} ago`);
  return warning(
    'stuck_rows',
    `leases expired more than ${expiredFor} ago: ${stuck.join(', ')}`,
    'run a process with the role api or workers, which releases them; if one runs, see its log',
  );
}
