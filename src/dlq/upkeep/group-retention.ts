import type { Service } from '../../kernel/service.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { batchTask, deleteTask, type RetentionTask } from '../../platform/work/retention-tasks.ts';
import { createRetention, every, type RetentionLog } from '../../platform/work/retention.ts';
import type { Worker } from '../../platform/work/work.ts';

/** Deletes what groups and the search keep of messages that are gone. */
export function createGroupRetention(worker: Worker, log: RetentionLog): Service {
  return createRetention(worker, {
    name: 'dlq.group-retention',
    rounds: [
      {
        schedule: every(6 * 3_600_000),
        tasks: groupRetention(worker.db),
        pausePerRound: 10,
        done: 'deleted groups and index rows without messages',
      },
    ],
    log,
  });
}

/** A process that ingests remembers for an hour which causes it has stored. */
const fingerprintDays = 1;

export function groupRetention(db: Queryable, batchSize = 5000): readonly RetentionTask[] {
  return [
    deleteTask({ name: 'counts of groups without messages', count: 'counts', batchSize }, async (limit) => {
      const rows = await db.query(sql`
        DELETE FROM dlq.group_counts c USING (
          SELECT fingerprint, original_topic, consumer_group, status, hour FROM dlq.group_counts
          WHERE messages = 0 AND hour = 'epoch' LIMIT ${limit} FOR UPDATE SKIP LOCKED) AS e
        WHERE c.fingerprint = e.fingerprint AND c.original_topic = e.original_topic
          AND c.consumer_group = e.consumer_group AND c.status = e.status AND c.hour = e.hour
        RETURNING 1`);
      return rows.length;
    }),
    deleteTask({ name: 'fingerprints without messages', count: 'fingerprints', batchSize }, async (limit) => {
      const rows = await db.query(sql`
        DELETE FROM dlq.fingerprints f WHERE f.fingerprint IN (
          SELECT e.fingerprint FROM dlq.fingerprints e
          WHERE e.last_at < clock_timestamp() - ${fingerprintDays} * interval '1 day'
            AND NOT EXISTS (SELECT FROM dlq.group_figures g WHERE g.fingerprint = e.fingerprint)
            AND NOT EXISTS (SELECT FROM dlq.dlq_messages t WHERE t.fingerprint = e.fingerprint)
            AND NOT EXISTS (SELECT FROM dlq.dlq_messages_archive t WHERE t.fingerprint = e.fingerprint)
          LIMIT ${limit} FOR UPDATE SKIP LOCKED)
        RETURNING 1`);
      return rows.length;
    }),
    strayTask(db, sql`dlq.message_facets`, sql`dlq.dlq_messages`, batchSize),
    strayTask(db, sql`dlq.message_facets_archive`, sql`dlq.dlq_messages_archive`, batchSize),
  ];
}

/** A message that is deleted or archived while it is indexed leaves a row behind, which no list shows. */
function strayTask(db: Queryable, facets: Sql, messages: Sql, batchSize: number): RetentionTask {
  return batchTask<string>('index rows without messages', async (after) => {
    const [row] = await db.query<{ next: string | null; deleted: bigint }>(sql`
      WITH batch AS MATERIALIZED (
        SELECT f.message_id FROM ${facets} f
        WHERE ${after === null ? sql`true` : sql`f.message_id > ${after}::uuid`}
        ORDER BY f.message_id LIMIT ${batchSize}
      ), deleted AS (
        DELETE FROM ${facets} f USING batch b
        WHERE f.message_id = b.message_id AND NOT EXISTS (SELECT FROM ${messages} t WHERE t.id = b.message_id)
        RETURNING 1
      )
      SELECT (SELECT count(*) FROM deleted) AS deleted,
             CASE WHEN (SELECT count(*) FROM batch) = ${batchSize}
                  THEN (SELECT message_id FROM batch ORDER BY message_id DESC LIMIT 1) END AS next`);
    return { counts: { strays: Number(row?.deleted ?? 0n) }, next: row?.next ?? null };
  });
}
