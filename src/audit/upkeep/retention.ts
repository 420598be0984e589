import { hourMs } from '../../kernel/duration.ts';
import type { Service } from '../../kernel/service.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { type RetentionTask } from '../../platform/work/retention-tasks.ts';
import { createRetention, every, type RetentionLog } from '../../platform/work/retention.ts';
import type { Worker } from '../../platform/work/work.ts';

/** Makes the partitions of the coming months, and drops those whose events are sealed and older than their retention. */
export function createAuditRetention(worker: Worker, log: RetentionLog): Service {
  return createRetention(worker, {
    name: 'audit.retention',
    rounds: [
      {
        schedule: every(hourMs),
        tasks: [auditMonths(worker.db)],
        done: 'maintained the partitions of the audit log',
      },
    ],
    log,
  });
}

function auditMonths(db: Queryable): RetentionTask {
  return {
    name: 'partitions of the audit log',
    async run() {
      const [row] = await db.query<{ made: number; dropped: number }>(sql`
        SELECT audit.make_months() AS made, audit.drop_old_months() AS dropped`);
      return { made: row?.made ?? 0, dropped: row?.dropped ?? 0 };
    },
  };
}
