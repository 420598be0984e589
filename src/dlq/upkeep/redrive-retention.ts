import { hourMs, minuteMs } from '../../kernel/duration.ts';
import type { Service } from '../../kernel/service.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { deleteTask, type RetentionTask } from '../../platform/work/retention-tasks.ts';
import { createRetention, every, type RetentionLog } from '../../platform/work/retention.ts';
import type { Worker } from '../../platform/work/work.ts';
import { planLifeHours, stateAfter, statesBefore } from '../domain/redrive.ts';

/** After the end of a redrive; the receipt has the hash of its items. */
const itemDays = 30;
/** A receipt can be asked for in the yearly review of the year before. */
const redriveDays = 400;

/** Expires plans, and deletes what ended redrives leave: their items, and much later their receipts. */
export function createRedriveRetention(worker: Worker, log: RetentionLog): Service {
  return createRetention(worker, {
    name: 'dlq.redrive-retention',
    rounds: [
      { schedule: every(minuteMs), tasks: [planExpiry(worker.db)], done: 'expired plans of redrives' },
      {
        schedule: every(hourMs),
        tasks: redriveRetention(worker.db),
        pausePerRound: 10,
        done: 'deleted expired redrives',
      },
    ],
    log,
  });
}

export function planExpiry(db: Queryable, batchSize = 1000): RetentionTask {
  return deleteTask({ name: 'plans that were not started', count: 'plans', batchSize }, async (limit) => {
    const rows = await db.query(sql`
      UPDATE dlq.redrives
      SET state = ${stateAfter('expire')}, finished_at = clock_timestamp(),
          state_reason = ${`it was not started within ${planLifeHours} hours`}
      WHERE id IN (
        SELECT id FROM dlq.redrives
        WHERE state = ANY(${statesBefore('expire')}::text[])
          AND planned_at < clock_timestamp() - ${planLifeHours} * interval '1 hour'
        LIMIT ${limit} FOR UPDATE SKIP LOCKED)
      RETURNING id`);
    return rows.length;
  });
}

export function redriveRetention(db: Queryable, batchSize = 5000): readonly RetentionTask[] {
  return [
    deleteTask({ name: 'items of ended redrives', count: 'items', batchSize }, async (limit) => {
      const rows = await db.query(sql`
        WITH expired AS MATERIALIZED (
          SELECT i.redrive_id, i.position
          FROM dlq.redrives r CROSS JOIN LATERAL (
            SELECT redrive_id, position FROM dlq.redrive_items WHERE redrive_id = r.id LIMIT ${limit}) AS i
          WHERE r.finished_at < clock_timestamp() - ${itemDays} * interval '1 day'
            AND r.state IN ('finished', 'cancelled', 'failed', 'expired')
          LIMIT ${limit}
        )
        DELETE FROM dlq.redrive_items i USING expired
        WHERE i.redrive_id = expired.redrive_id AND i.position = expired.position
        RETURNING i.position`);
      return rows.length;
    }),
    deleteTask({ name: 'expired redrives', count: 'redrives', batchSize }, async (limit) => {
      const rows = await db.query(sql`
        DELETE FROM dlq.redrives WHERE id IN (
          SELECT r.id FROM dlq.redrives r
          WHERE r.finished_at < clock_timestamp() - ${redriveDays} * interval '1 day'
            AND r.state IN ('finished', 'cancelled', 'failed', 'expired')
            AND NOT EXISTS (SELECT 1 FROM dlq.redrive_items i WHERE i.redrive_id = r.id)
          LIMIT ${limit} FOR UPDATE SKIP LOCKED)
        RETURNING id`);
      return rows.length;
    }),
  ];
}
