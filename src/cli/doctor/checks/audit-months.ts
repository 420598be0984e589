import type { Queryable } from '../../../platform/postgres/database.ts';
import { sql } from '../../../platform/postgres/sql.ts';
import { ok, warning, type Finding } from '../finding.ts';

/** A month without a partition of its own fills the default one, which cannot be dropped as a whole. */
export async function examineAuditMonths(db: Queryable): Promise<Finding> {
  const [row] = await db.query<{ hasNext: boolean; inDefault: boolean }>(sql`
    SELECT EXISTS (SELECT FROM outbox.audit_partitions()
                   WHERE begins_at <= now() + interval '1 month' AND ends_at > now() + interval '1 month') AS "hasNext",
           EXISTS (SELECT FROM outbox.outbox_audit_default) AS "inDefault"`);
  const advice = 'run a process with the role workers, which makes partitions every hour';
  if (row?.hasNext !== true)
    return warning('partitions', 'outbox.outbox_audit has no partition for the next month', advice);
  if (row.inDefault) return warning('partitions', 'rows in outbox.outbox_audit_default', advice);
  return ok('partitions', 'the next month has its own');
}
