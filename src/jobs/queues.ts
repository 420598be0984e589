import { createHash } from 'node:crypto';
import { cleanText } from '../kernel/text.ts';
import type { Database, Queryable } from '../platform/postgres/database.ts';
import { unnestRows } from '../platform/postgres/unnest-rows.ts';
import { changeRow } from '../platform/work/shared-row.ts';
import { notify } from '../platform/work/wake.ts';
import { sql } from '../platform/postgres/sql.ts';
import { queuesChannel } from './channels.ts';
import type { PushCircuit } from './domain/push-circuit.ts';
import { defaultSettings, type QueueSettings } from './domain/queue-settings.ts';

/**
 * A process's copy of `jobs.queues`: settings, limits and circuits. Every claim and settle asks it, so it answers from
 * memory; `refresh` reads the table again.
 */
export type Queues = Readonly<{
  settingsOf(queue: string): QueueSettings;
  /** Its claims are limited over all processes. */
  isLimited(queue: string): boolean;
  /** Null while its target answers, or if it has none. */
  circuitOf(queue: string): PushCircuit | null;
  /** The circuit that was just written. */
  noteCircuit(queue: string, circuit: PushCircuit | null): void;
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
  circuit: unknown;
}>;

export function createQueues(db: Queryable): Queues {
  let settings: ReadonlyMap<string, QueueSettings> = new Map();
  let throttled: ReadonlySet<string> = new Set();
  let circuits = new Map<string, PushCircuit | null>();
  let notes = 0;
  /** The number of each queue's last note. */
  const notedAs = new Map<string, number>();
  const settingsOf = (queue: string): QueueSettings => settings.get(queue) ?? defaultSettings;
  return {
    settingsOf,
    isLimited(queue) {
      const { maxRunning, rateLimit } = settingsOf(queue);
      return maxRunning !== null || rateLimit !== null || throttled.has(queue);
    },
    circuitOf: (queue) => circuits.get(queue) ?? null,
    noteCircuit(queue, circuit) {
      notes += 1;
      notedAs.set(queue, notes);
      circuits.set(queue, circuit);
    },
    async refresh() {
      const notesBefore = notes;
      const rows = await db.query<QueueRow>(sql`
        SELECT queue, max_retries, timeout_ms, backoff_initial_ms, backoff_max_ms, backoff_jitter, max_deferrals,
               keep_completed, max_running, rate_count, rate_window_ms, throttle IS NOT NULL AS is_throttled,
               circuit
        FROM jobs.queues`);
      settings = new Map(rows.map((row) => [row.queue, settingsFrom(row)]));
      // A circuit that was noted while the rows were read is newer than they are.
      const isNewer = (queue: string): boolean => (notedAs.get(queue) ?? 0) > notesBefore;
      const noted = circuits;
      circuits = new Map(
        rows.map(({ queue, circuit }) => [
          queue,
          isNewer(queue) ? (noted.get(queue) ?? null) : readCircuit(circuit),
        ]),
      );
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

export type ConfiguredQueue = QueueSettings &
  Readonly<{ name: string; target?: Readonly<{ url: string }> | null }>;

/**
 * Stores the configured queues for every process that works on them. A queue that is no longer configured returns to
 * the defaults; a circuit is deleted when its target changes. The most recently started server wins.
 */
export async function writeConfiguredQueues(db: Database, queues: readonly ConfiguredQueue[]): Promise<void> {
  const rows = unnestRows<ConfiguredQueue>(sql`configured`, queues, [
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
    [sql`target`, sql`text[]`, ({ target }) => (target ? hashTarget(target.url) : null)],
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
    await tx.query(sql`
      UPDATE jobs.queues q SET circuit = NULL
      WHERE q.circuit IS NOT NULL
        AND NOT EXISTS (
          SELECT 1 FROM ${rows} WHERE configured.queue = q.queue AND configured.target = q.circuit ->> 'target')`);
    await notify(tx, queuesChannel);
  });
}

export type ChangedCircuit = Readonly<{ before: PushCircuit | null; after: PushCircuit | null }>;

export type DecideCircuit = (circuit: PushCircuit | null, nowMs: number) => PushCircuit | null;

/** Both are null if the queue is no longer configured. */
export async function changeCircuit(
  db: Database,
  { queue, url }: Readonly<{ queue: string; url: string }>,
  decide: DecideCircuit,
): Promise<ChangedCircuit> {
  const changed = await changeRow<PushCircuit | null, null>(
    db,
    {
      async lock(tx) {
        const [row] = await tx.query<{ now: Date; circuit: unknown }>(sql`
          SELECT clock_timestamp() AS now, q.circuit
          FROM (SELECT circuit FROM jobs.queues WHERE queue = ${queue} FOR UPDATE) q`);
        return row === undefined ? null : { state: readCircuit(row.circuit), nowMs: row.now.getTime() };
      },
      async write(tx, circuit) {
        await tx.query(sql`
          UPDATE jobs.queues
          SET circuit = ${circuit === null ? null : JSON.stringify(stored(circuit, url))}::jsonb
          WHERE queue = ${queue}`);
        await notify(tx, queuesChannel);
      },
    },
    (circuit, nowMs) => ({ state: decide(circuit, nowMs), result: null }),
  );
  return changed ?? { before: null, after: null };
}

/** Identifies a circuit's target; the URL itself may contain secrets. */
function hashTarget(url: string): string {
  return createHash('sha256').update(url).digest('hex').slice(0, 16);
}

type StoredCircuit = Readonly<{
  target: string;
  failures: number;
  job_ids: readonly string[];
  first_at_ms: number;
  is_unreachable: boolean;
  opened_at_ms: number | null;
  reason: string;
  interval_ms: number;
  next_probe_at_ms: number;
}>;

const reasonMaxBytes = 500;

function stored(circuit: PushCircuit, url: string): StoredCircuit {
  return {
    target: hashTarget(url),
    failures: circuit.failures,
    job_ids: circuit.itemIds,
    first_at_ms: circuit.firstAtMs,
    is_unreachable: circuit.isUnreachable,
    opened_at_ms: circuit.openedAtMs,
    reason: cleanText(circuit.reason, reasonMaxBytes),
    interval_ms: circuit.intervalMs,
    next_probe_at_ms: circuit.nextProbeAtMs,
  };
}

/** Null for a value that was edited by hand and is not valid. */
export function readCircuit(value: unknown): PushCircuit | null {
  if (typeof value !== 'object' || value === null) return null;
  const circuit = value as Partial<StoredCircuit>;
  const numbers = [circuit.failures, circuit.first_at_ms, circuit.interval_ms, circuit.next_probe_at_ms];
  const openedAtMs = circuit.opened_at_ms ?? null;
  if (!numbers.every(Number.isFinite) || (openedAtMs !== null && !Number.isFinite(openedAtMs))) return null;
  return {
    failures: Number(circuit.failures),
    itemIds: Array.isArray(circuit.job_ids) ? circuit.job_ids.map(String) : [],
    firstAtMs: Number(circuit.first_at_ms),
    isUnreachable: circuit.is_unreachable === true,
    openedAtMs,
    reason: typeof circuit.reason === 'string' ? circuit.reason : '',
    intervalMs: Number(circuit.interval_ms),
    nextProbeAtMs: Number(circuit.next_probe_at_ms),
  };
}
