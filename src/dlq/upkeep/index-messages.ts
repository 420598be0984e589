import { sleep } from '../../kernel/clock.ts';
import { formatTimestamp } from '../../kernel/timestamp.ts';
import type { Service } from '../../kernel/service.ts';
import type { HealthCheck } from '../../platform/http/readiness.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { troubleOf } from '../../platform/postgres/sqlstate.ts';
import type { Logger } from '../../platform/telemetry/logger.ts';
import { createNamedLease } from '../../platform/work/named-lease.ts';
import { storeBatch } from '../../platform/work/store-batch.ts';
import type { Wake } from '../../platform/work/wake.ts';
import type { Worker } from '../../platform/work/work.ts';

/**
 * Writes what filters and the full-text search read, behind ingest. Triggers queue the messages; one process at a time
 * takes them from the queue, new ones before those that were there before the index. A batch and its queue entries
 * change in one statement, so that a crash repeats the batch. While messages arrive it looks every second; after a
 * quiet minute it waits for the triggers to notify it.
 */
export function createMessageIndexer(worker: Worker, wake: Wake, log: Logger): Service {
  return createNamedLease(worker, {
    name: 'dlq.indexer',
    async work(signal, beat) {
      let indexedAtMs = -Infinity;
      let isAnnounced = false;
      while (!signal.aborted) {
        const startMs = performance.now();
        const indexed = await indexBatch(worker.db, (id, error) =>
          log.warn({ message_id: id, err: error }, 'failed to index the text of a message; indexed the rest'),
        );
        beat();
        const nowMs = performance.now();
        if (indexed > 0) indexedAtMs = nowMs;
        if (indexed > 0) await sleep(Math.min((nowMs - startMs) * pausePerBatch, pollMs), signal);
        else if (nowMs - indexedAtMs < busyForMs) await sleep(pollMs, signal);
        else {
          // Messages that were queued before this process announced itself as waiting are found by a short poll.
          const waitMs = isAnnounced && wake.isListening() ? maxIdleMs : idlePollMs;
          const isNotified: boolean = await wake.wait(indexChannel, waitMs, signal);
          isAnnounced = !isNotified;
          continue;
        }
        isAnnounced = false;
      }
    },
    onError: (error) => log.warn({ err: error, lease: 'dlq.indexer' }, 'failed to index messages'),
  });
}

/** How late a search finds a new message. */
const pollMs = 1000;
/** The triggers that queue messages use the same name. */
const indexChannel = 'dlq_index';
/** Without new messages for a while, and without LISTEN. */
const idlePollMs = 5000;
/** With LISTEN, for an entry that was queued without a notification. */
const maxIdleMs = 30_000;
/** Dead letters come in bursts, with pauses between them. */
const busyForMs = 60_000;
/** A backlog must not slow down ingest and retries. */
const pausePerBatch = 1;
/** Of up to 100 messages each. */
const batchEntries = 5;

type OnBadText = (id: string, error: unknown) => void;

/** Indexes until nothing is queued. */
export async function indexAll(db: Queryable, onBadText: OnBadText = () => {}): Promise<void> {
  while ((await indexBatch(db, onBadText)) > 0);
}

/** Returns how many entries of the queue it has done. */
async function indexBatch(db: Queryable, onBadText: OnBadText): Promise<number> {
  try {
    const [row] = await db.query<{ entries: bigint }>(sql`
      WITH taken AS (
        DELETE FROM dlq.index_queue q USING (${nextEntries}) AS n WHERE ${isSameEntry} RETURNING q.message_ids
      )
      SELECT (SELECT count(*) FROM taken) AS entries,
             dlq.index_messages(ARRAY(SELECT DISTINCT unnest(message_ids) FROM taken))`);
    return Number(row?.entries ?? 0n);
  } catch (error) {
    if (troubleOf(error) !== 'data') throw error;
    return indexOneByOne(db, onBadText);
  }
}

const nextEntries: Sql = sql`
  SELECT is_backfill, queued_at, id FROM dlq.index_queue ORDER BY is_backfill, queued_at, id LIMIT ${batchEntries}`;
const isSameEntry: Sql = sql`
  q.is_backfill = n.is_backfill AND q.queued_at = n.queued_at AND q.id = n.id`;

/** PostgreSQL has refused a message of the batch: its text is left out, so that it holds up no other. */
async function indexOneByOne(db: Queryable, onBadText: OnBadText): Promise<number> {
  const entries = await db.query<{ id: bigint; message_ids: readonly string[] }>(sql`
    SELECT q.id, q.message_ids FROM dlq.index_queue q JOIN (${nextEntries}) AS n ON ${isSameEntry}`);
  const ids = [...new Set(entries.flatMap((entry) => entry.message_ids))];
  await storeBatch(ids, {
    store: async (some) => void (await db.query(sql`SELECT dlq.index_messages(${some}::uuid[])`)),
    storeBad: async (id, error) => {
      onBadText(id, error);
      await db.query(sql`SELECT dlq.index_messages(${[id]}::uuid[], false)`);
    },
    until: AbortSignal.timeout(60_000),
  });
  await db.query(sql`DELETE FROM dlq.index_queue WHERE id = ANY(${entries.map(({ id }) => id)}::bigint[])`);
  return entries.length;
}

export type IndexBacklog = Readonly<{ messages: number; oldestSeconds: number }>;

export async function measureIndexBacklog(db: Queryable): Promise<IndexBacklog> {
  const [row] = await db.query<{ messages: bigint; seconds: number | null }>(sql`
    SELECT COALESCE(sum(cardinality(message_ids)), 0)::bigint AS messages,
           date_part('epoch', clock_timestamp() - min(queued_at) FILTER (WHERE isfinite(queued_at))) AS seconds
    FROM dlq.index_queue`);
  return { messages: Number(row?.messages ?? 0n), oldestSeconds: Math.max(0, row?.seconds ?? 0) };
}

/** Longer than any burst of dead letters takes. */
const alertSeconds = 300;

/** Degraded while new messages wait so long that searches miss them. Messages from before the index do not count. */
export function indexCheck(db: Queryable): HealthCheck {
  return {
    name: 'dlq_index',
    critical: false,
    async check() {
      const [row] = await db.query<{ since: number; seconds: number }>(sql`
        SELECT date_part('epoch', q.queued_at) AS since, date_part('epoch', clock_timestamp() - q.queued_at) AS seconds
        FROM dlq.index_queue q WHERE NOT q.is_backfill ORDER BY q.queued_at, q.id LIMIT 1`);
      if (row === undefined || row.seconds < alertSeconds) return { status: 'healthy' };
      const since = formatTimestamp(new Date(row.since * 1000));
      return {
        status: 'degraded',
        message: `messages stored since ${since} are not indexed: searches miss them; is a process with role workers running?`,
      };
    },
  };
}
