import type { Queryable } from '../../platform/postgres/database.ts';
import { rowsOf } from '../../platform/postgres/rows-of.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { leaseIsOver } from '../../platform/postgres/work.ts';
import { pulledBy } from './postgres-pull-store.ts';

/**
 * A pulled job whose lease went as far as the job's own time: it did not end in time. In another process nobody says
 * so when the time is over, as our own workers do; the lease says it. Whether its worker is still there is unknown.
 */
export function isOverdue(timeoutMs: number): Sql {
  return sql`(starts_with(t.lease_owner, ${pulledBy})
    AND t.lease_until >= t.started_at + ${timeoutMs} * interval '1 millisecond') IS TRUE`;
}

export type OverduePull = Readonly<{ job_id: string; lease_epoch: bigint; lease_owner: string }>;

export async function findOverdue(
  db: Queryable,
  { queue, timeoutMs, limit }: Readonly<{ queue: string; timeoutMs: number; limit: number }>,
): Promise<readonly OverduePull[]> {
  return db.query<OverduePull>(sql`
    SELECT t.job_id, t.lease_epoch, t.lease_owner FROM jobs.job_queue t
    WHERE t.queue = ${queue} AND t.status = 'running' AND ${leaseIsOver} AND ${isOverdue(timeoutMs)}
    LIMIT ${limit}`);
}

/** As a settle wants them. */
export function overdueRows(overdue: readonly OverduePull[]): Sql {
  return rowsOf<OverduePull>(sql`held`, overdue, [
    [sql`key`, sql`uuid[]`, (row) => row.job_id],
    [sql`epoch`, sql`bigint[]`, (row) => row.lease_epoch],
    [sql`worker`, sql`text[]`, (row) => row.lease_owner],
  ]);
}
