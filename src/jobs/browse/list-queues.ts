import type { Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import type { Status } from '../domain/job.ts';
import { isOpen } from '../domain/push-circuit.ts';
import type { QueueSettings } from '../domain/queue-settings.ts';
import { readCircuit } from '../queues.ts';
import type { Pause } from '../queue-pause.ts';
import type { Count } from './list-jobs.ts';

/** The queue's target does not answer: its jobs wait until a probe succeeds, at no cost. */
export type TargetDown = Readonly<{ since: Date; reason: string; nextProbeAt: Date }>;

export type ListedQueue = Readonly<{
  name: string;
  /** A server's configuration names it. */
  isConfigured: boolean;
  settings: QueueSettings;
  hasTarget: boolean;
  pause: Pause | null;
  targetDown: TargetDown | null;
  counts: Readonly<Record<Status, Count>>;
  /** Dead letters neither cancelled nor discarded. */
  unresolved: Count;
  /** How long the oldest due job has been waiting; null if none is due. */
  lagSeconds: number | null;
}>;

export type ListQueuesDeps = Readonly<{
  db: Queryable;
  settingsOf: (queue: string) => QueueSettings;
  /** Queues whose jobs a server pushes, as this process is configured. */
  pushed: ReadonlySet<string>;
}>;

/** Queues usually come from the configuration, but SQL callers can create any number. */
const queueLimit = 1000;
/** Waiting jobs read per queue. */
const waitingLimit = 2000;
const countLimit = 10_000;
/** No index has the completed jobs: a table with more pages is estimated from a sample of this many. */
const samplePages = 400;

type QueueRow = Readonly<{
  queue: string;
  is_configured: boolean;
  paused: boolean;
  paused_at: Date | null;
  paused_by: string | null;
  paused_reason: string | null;
  circuit: unknown;
  scanned: bigint;
  pending: bigint;
  failed: bigint;
  running: bigint;
  dead_letter: bigint;
  unresolved: bigint;
  lag_seconds: number | null;
  sampled_pending: bigint;
  sampled_running: bigint;
  sampled_failed: bigint;
  sampled_completed: bigint;
  sampled_dead_letter: bigint;
  sampled_unresolved: bigint;
}>;

/** Every queue that is configured, paused or has jobs, by name. */
export async function listQueues(deps: ListQueuesDeps): Promise<readonly ListedQueue[]> {
  const { db } = deps;
  const percent = await samplePercent(db);
  const rows = await db.query<QueueRow>(sql`
    WITH RECURSIVE ${namesIn(sql`waiting_names`, sql`t.status IN ('pending', 'failed')`)},
    ${namesIn(sql`dead_names`, sql`t.status = 'dead_letter'`)},
    sample AS MATERIALIZED (
      SELECT queue,
             count(*) FILTER (WHERE status = 'pending') AS pending,
             count(*) FILTER (WHERE status = 'running') AS running,
             count(*) FILTER (WHERE status = 'failed') AS failed,
             count(*) FILTER (WHERE status = 'completed') AS completed,
             count(*) FILTER (WHERE status = 'dead_letter') AS dead_letter,
             count(*) FILTER (WHERE status = 'dead_letter' AND resolution IS NULL) AS unresolved
      FROM jobs.job_queue TABLESAMPLE SYSTEM (${percent}) REPEATABLE (0)
      GROUP BY queue
    ), named AS MATERIALIZED (
      SELECT queue FROM jobs.queues
      UNION SELECT queue FROM waiting_names WHERE queue IS NOT NULL
      UNION SELECT queue FROM dead_names WHERE queue IS NOT NULL
      UNION SELECT queue FROM jobs.job_queue WHERE status = 'running'
      UNION SELECT queue FROM sample
      ORDER BY queue LIMIT ${queueLimit}
    )
    SELECT named.queue, COALESCE(q.is_configured, false) AS is_configured, COALESCE(q.paused, false) AS paused,
           q.paused_at, q.paused_by, q.paused_reason, q.circuit, waiting.scanned, waiting.pending, waiting.failed,
           running_count.running, dead_letter_count.dead_letter, unresolved_count.unresolved,
           (EXTRACT(EPOCH FROM clock_timestamp() - waiting.due_since))::float8 AS lag_seconds,
           COALESCE(s.pending, 0) AS sampled_pending, COALESCE(s.running, 0) AS sampled_running,
           COALESCE(s.failed, 0) AS sampled_failed, COALESCE(s.completed, 0) AS sampled_completed,
           COALESCE(s.dead_letter, 0) AS sampled_dead_letter, COALESCE(s.unresolved, 0) AS sampled_unresolved
    FROM named
    LEFT JOIN jobs.queues q ON q.queue = named.queue
    LEFT JOIN sample s ON s.queue = named.queue
    CROSS JOIN LATERAL (
      SELECT count(*) AS scanned, count(*) FILTER (WHERE status = 'pending') AS pending,
             count(*) FILTER (WHERE status = 'failed') AS failed,
             min(since) FILTER (WHERE run_at <= now() AND isfinite(since)) AS due_since
      FROM (SELECT t.status, t.run_at, ${dueSince} AS since FROM jobs.job_queue t
            WHERE t.queue = named.queue AND t.status IN ('pending', 'failed')
            ORDER BY t.sort_at, t.job_id LIMIT ${waitingLimit + 1}) AS first
    ) AS waiting
    CROSS JOIN LATERAL ${counted(sql`running`, sql`t.status = 'running'`)}
    CROSS JOIN LATERAL ${counted(sql`dead_letter`, sql`t.status = 'dead_letter'`)}
    CROSS JOIN LATERAL ${counted(sql`unresolved`, sql`t.status = 'dead_letter' AND t.resolution IS NULL`)}
    ORDER BY named.queue`);
  return rows.map((row) => queueOf(row, percent, deps)).toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** A `run_at` in the past does not make a job wait longer than it has existed. */
const dueSince: Sql = sql`GREATEST(t.run_at, t.created_at)`;

async function samplePercent(db: Queryable): Promise<number> {
  const [row] = await db.query<{ pages: number }>(sql`
    SELECT (pg_relation_size('jobs.job_queue') / current_setting('block_size')::int)::float8 AS pages`);
  return Math.min(100, (100 * samplePages) / Math.max(1, row?.pages ?? 1));
}

/** Each step finds the next queue name with one index lookup. */
function namesIn(name: Sql, where: Sql): Sql {
  return sql`${name} (queue, place) AS (
    (SELECT t.queue, 1 FROM jobs.job_queue t WHERE ${where} ORDER BY t.queue LIMIT 1)
    UNION ALL
    SELECT (SELECT t.queue FROM jobs.job_queue t WHERE ${where} AND t.queue > n.queue ORDER BY t.queue LIMIT 1),
           n.place + 1
    FROM ${name} n WHERE n.queue IS NOT NULL AND n.place < ${queueLimit}
  )`;
}

function counted(name: Sql, where: Sql): Sql {
  return sql`(
    SELECT count(*) AS ${name} FROM (
      SELECT 1 FROM jobs.job_queue t WHERE t.queue = named.queue AND ${where} LIMIT ${countLimit + 1}) AS first
  ) AS ${name}_count`;
}

function queueOf(
  row: QueueRow,
  percent: number,
  { settingsOf, pushed }: Omit<ListQueuesDeps, 'db'>,
): ListedQueue {
  const isWhole = percent === 100;
  /** The exact count, or if counting stopped at its limit, the sample's estimate, but not less than was counted. */
  const count = (sampled: bigint, seen: bigint, isAll: boolean): Count => {
    if (isAll) return { total: Number(seen), isEstimate: false };
    const inAll = Math.round((Number(sampled) * 100) / percent);
    return { total: Math.max(Number(seen), inAll), isEstimate: !isWhole };
  };
  const isAllWaiting = row.scanned <= BigInt(waitingLimit);
  const isAll = (seen: bigint): boolean => seen <= BigInt(countLimit);
  const counts: Readonly<Record<Status, Count>> = {
    pending: count(row.sampled_pending, row.pending, isAllWaiting),
    running: count(row.sampled_running, row.running, isAll(row.running)),
    failed: count(row.sampled_failed, row.failed, isAllWaiting),
    completed: count(row.sampled_completed, 0n, false),
    dead_letter: count(row.sampled_dead_letter, row.dead_letter, isAll(row.dead_letter)),
  };
  return {
    name: row.queue,
    isConfigured: row.is_configured,
    settings: settingsOf(row.queue),
    hasTarget: pushed.has(row.queue),
    pause: row.paused ? { at: row.paused_at, by: row.paused_by, reason: row.paused_reason } : null,
    targetDown: targetDownOf(row.circuit),
    counts,
    unresolved: count(row.sampled_unresolved, row.unresolved, isAll(row.unresolved)),
    lagSeconds: row.lag_seconds === null ? null : Math.max(0, row.lag_seconds),
  };
}

function targetDownOf(stored: unknown): TargetDown | null {
  const circuit = readCircuit(stored);
  if (!isOpen(circuit)) return null;
  const { openedAtMs, reason, nextProbeAtMs } = circuit;
  return { since: new Date(openedAtMs), reason, nextProbeAt: new Date(nextProbeAtMs) };
}
