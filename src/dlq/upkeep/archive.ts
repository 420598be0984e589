import { Cron } from 'croner';
import type { Service } from '../../kernel/service.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { createRetention, type RetentionLog } from '../../platform/work/retention.ts';
import type { Worker } from '../../platform/work/work.ts';

export type ArchiveOptions = Readonly<{ schedule: string; retentionDays: number; purgeDays: number }>;

export type ArchiveDeps = Readonly<{
  db: Database;
  log: RetentionLog;
  onArchived: (count: number) => void;
}>;

/** Its row also says when messages were last archived. */
const leaseName = 'dlq.archive';

/** Archives and purges messages at the scheduled times. */
export function createMessageArchive(
  worker: Worker,
  { db, log, onArchived }: ArchiveDeps,
  { schedule, retentionDays, purgeDays }: ArchiveOptions,
): Service {
  const cron = new Cron(schedule, { paused: true, timezone: 'UTC' });
  return createRetention(worker, {
    name: leaseName,
    rounds: [
      {
        // Timers may fire a moment early: a second later the next time is never the one that was just served.
        schedule: (sinceLastMs = 1000) => Math.max(cron.msToNext() ?? 86_400_000, 1000 - sinceLastMs),
        tasks: [
          {
            name: 'expired messages',
            run: async () => ({ archived: await archiveMessages(db, retentionDays) }),
          },
          { name: 'archived messages', run: async () => ({ purged: await purgeArchive(db, purgeDays) }) },
        ],
        done: 'archived expired messages and purged archived ones',
        onDone: ({ archived = 0 }) => onArchived(archived),
      },
    ],
    log,
  });
}

/** Runs the procedure that an operator can also call, and reads the count from its notice. It commits every batch. */
export async function archiveMessages(db: Database, retentionDays: number): Promise<number> {
  const archived = countIn(await db.call(sql`CALL dlq.archive_old_dlq_messages(${retentionDays}::int)`));
  await db.query(sql`
    INSERT INTO platform.leases (name, succeeded_at) VALUES (${leaseName}, clock_timestamp())
    ON CONFLICT (name) DO UPDATE SET succeeded_at = EXCLUDED.succeeded_at`);
  return archived;
}

/**
 * When messages were last archived, by the schedule or by a command, in seconds since 1970. Before that it is the time
 * when the schema was created if there is a schedule, else null.
 */
export async function lastArchivedAt(db: Queryable, isScheduled: boolean): Promise<number | null> {
  const [row] = await db.query<{ at: number | null }>(sql`
    SELECT date_part('epoch', COALESCE(
      (SELECT succeeded_at FROM platform.leases WHERE name = ${leaseName}),
      CASE WHEN ${isScheduled} THEN (SELECT min(applied_at) FROM platform.migrations WHERE slice = 'dlq') END)) AS at`);
  return row?.at ?? null;
}

export async function purgeArchive(db: Database, purgeDays: number): Promise<number> {
  return countIn(await db.call(sql`CALL dlq.purge_archived_dlq_messages(${purgeDays}::int)`));
}

function countIn(notices: readonly string[]): number {
  const [, digits] = /^(?:Archived|Purged) (\d+) /.exec(notices.at(-1) ?? '') ?? [];
  return Number(digits ?? 0);
}
