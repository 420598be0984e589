import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { rowsOf } from '../../platform/postgres/rows-of.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { defaultSettings, type QueueSettings } from '../domain/queue-settings.ts';

/**
 * What holds for each queue, as the database says. It is asked in the middle of everything, so it answers from
 * memory; `refresh` reads it again.
 */
export type QueueBook = Readonly<{
  settingsOf(queue: string): QueueSettings;
  /** Whether its claims have to be counted over all processes. */
  isLimited(queue: string): boolean;
  refresh(): Promise<void>;
}>;

type QueueRow = Readonly<{
  queue: string;
  max_retries: number;
  timeout_ms: number;
  backoff_initial_ms: number;
  backoff_max_ms: number;
  backoff_jitter: number;
  max_deferrals: number;
  keep_completed: boolean;
  max_running: number | null;
  rate_count: number | null;
  rate_window_ms: number | null;
  is_throttled: boolean;
}>;

export function createPostgresQueueBook(db: Queryable): QueueBook {
  let settings: ReadonlyMap<string, QueueSettings> = new Map();
  let throttled: ReadonlySet<string> = new Set();
  const settingsOf = (queue: string): QueueSettings => settings.get(queue) ?? defaultSettings;
  return {
    settingsOf,
    isLimited(queue) {
      const { maxRunning, rateLimit } = settingsOf(queue);
      return maxRunning !== null || rateLimit !== null || throttled.has(queue);
    },
    async refresh() {
      const rows = await db.query<QueueRow>(sql`
        SELECT queue, max_retries, timeout_ms, backoff_initial_ms, backoff_max_ms, backoff_jitter, max_deferrals,
               keep_completed, max_running, rate_count, rate_window_ms, throttle IS NOT NULL AS is_throttled
        FROM jobs.queues`);
      settings = new Map(rows.map((row) => [row.queue, settingsFrom(row)]));
      throttled = new Set(rows.filter((row) => row.is_throttled).map(({ queue }) => queue));
    },
  };
}

function settingsFrom(row: QueueRow): QueueSettings {
  return {
    maxRetries: row.max_retries,
    timeoutMs: row.timeout_ms,
    backoff: {
      initialMs: row.backoff_initial_ms,
      maxMs: row.backoff_max_ms,
      jitter: row.backoff_jitter,
    },
    maxDeferrals: row.max_deferrals,
    keepCompleted: row.keep_completed,
    maxRunning: row.max_running,
    rateLimit:
      row.rate_count === null || row.rate_window_ms === null
        ? null
        : { count: row.rate_count, windowMs: row.rate_window_ms },
  };
}

export type ConfiguredQueue = QueueSettings & Readonly<{ name: string }>;

/**
 * Writes down what the configuration says, for every process that works on the queues. A queue that is configured no
 * longer goes back to the defaults. Of two configurations the one that was started last holds.
 */
export async function writeConfiguredQueues(db: Database, queues: readonly ConfiguredQueue[]): Promise<void> {
  const rows = rowsOf<ConfiguredQueue>(sql`told`, queues, [
    [sql`queue`, sql`text[]`, ({ name }) => name],
    [sql`max_retries`, sql`int[]`, ({ maxRetries }) => maxRetries],
    [sql`timeout_ms`, sql`int[]`, ({ timeoutMs }) => timeoutMs],
    [sql`backoff_initial_ms`, sql`int[]`, ({ backoff }) => backoff.initialMs],
    [sql`backoff_max_ms`, sql`int[]`, ({ backoff }) => backoff.maxMs],
    [sql`backoff_jitter`, sql`float8[]`, ({ backoff }) => backoff.jitter],
    [sql`max_deferrals`, sql`int[]`, ({ maxDeferrals }) => maxDeferrals],
    [sql`keep_completed`, sql`boolean[]`, ({ keepCompleted }) => keepCompleted],
    [sql`max_running`, sql`int[]`, ({ maxRunning }) => maxRunning],
    [sql`rate_count`, sql`int[]`, ({ rateLimit }) => rateLimit?.count ?? null],
    [sql`rate_window_ms`, sql`int[]`, ({ rateLimit }) => rateLimit?.windowMs ?? null],
  ]);
  const columns = sql`max_retries, timeout_ms, backoff_initial_ms, backoff_max_ms, backoff_jitter, max_deferrals,
    keep_completed, max_running, rate_count, rate_window_ms, is_configured, updated_at`;
  await db.transaction(async (tx) => {
    await tx.query(sql`SELECT pg_advisory_xact_lock(hashtextextended('jobs.queues', 0))`);
    await tx.query(sql`
      UPDATE jobs.queues SET (${columns}) =
        ROW (DEFAULT, DEFAULT, DEFAULT, DEFAULT, DEFAULT, DEFAULT, DEFAULT, DEFAULT, DEFAULT, DEFAULT, false,
             clock_timestamp())
      WHERE is_configured AND queue <> ALL (${queues.map(({ name }) => name)}::text[])`);
    await tx.query(sql`
      INSERT INTO jobs.queues (queue, ${columns})
      SELECT queue, max_retries, timeout_ms, backoff_initial_ms, backoff_max_ms, backoff_jitter, max_deferrals,
             keep_completed, max_running, rate_count, rate_window_ms, true, clock_timestamp()
      FROM ${rows} ORDER BY queue
      ON CONFLICT (queue) DO UPDATE SET
        max_retries = EXCLUDED.max_retries, timeout_ms = EXCLUDED.timeout_ms,
        backoff_initial_ms = EXCLUDED.backoff_initial_ms, backoff_max_ms = EXCLUDED.backoff_max_ms,
        backoff_jitter = EXCLUDED.backoff_jitter, max_deferrals = EXCLUDED.max_deferrals,
        keep_completed = EXCLUDED.keep_completed, max_running = EXCLUDED.max_running,
        rate_count = EXCLUDED.rate_count, rate_window_ms = EXCLUDED.rate_window_ms, is_configured = true,
        updated_at = EXCLUDED.updated_at`);
  });
}
