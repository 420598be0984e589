import type { Service } from '../../kernel/service.ts';
import type { Queryable } from '../postgres/database.ts';
import { sql } from '../postgres/sql.ts';
import type { Logger } from '../telemetry/logger.ts';
import { deleteTask, type RetentionTask } from './retention-tasks.ts';
import { createRetention, every } from './retention.ts';
import type { Worker } from './work.ts';

/** Notification events are history: the item that they are about has its own. */
const keepDays = 30;
const batchSize = 5000;

export function createPlatformRetention(worker: Worker, log: Logger): Service {
  return createRetention(worker, {
    name: 'platform.retention',
    rounds: [
      { schedule: every(3_600_000), tasks: platformRetention(worker.db), done: 'deleted old notify events' },
    ],
    log,
  });
}

/**
 * Without a notifier nobody takes events, so they are deleted after a month. So are groups: those of a notifier that
 * is no longer configured.
 */
export function platformRetention(db: Queryable): readonly RetentionTask[] {
  return [
    deleteTask({ name: 'old notify events', count: 'events', batchSize }, async (limit) => {
      const rows = await db.query(sql`
        WITH old AS MATERIALIZED (
          SELECT id FROM platform.notify_events
          WHERE at < clock_timestamp() - ${keepDays} * interval '1 day'
          ORDER BY at
          LIMIT ${limit}
          FOR UPDATE SKIP LOCKED
        )
        DELETE FROM platform.notify_events e USING old WHERE e.id = old.id RETURNING 1`);
      return rows.length;
    }),
    {
      name: 'old notify groups',
      async run() {
        const rows = await db.query(sql`
          DELETE FROM platform.notify_groups
          WHERE told_at < clock_timestamp() - ${keepDays} * interval '1 day'
          RETURNING 1`);
        return { groups: rows.length };
      },
    },
    {
      name: 'idle workers that are gone',
      async run() {
        const rows = await db.query(sql`
          DELETE FROM platform.idle_workers WHERE idle_until < now() - interval '1 day' RETURNING 1`);
        return { idleWorkers: rows.length };
      },
    },
  ];
}
