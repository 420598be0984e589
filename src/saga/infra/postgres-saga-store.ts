import { backoffMs } from '../../kernel/backoff.ts';
import { sleep } from '../../kernel/clock.ts';
import { messageOf } from '../../kernel/errors.ts';
import type { Lease } from '../../kernel/lease.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { rowsOf } from '../../platform/postgres/rows-of.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { troubleOf } from '../../platform/postgres/sqlstate.ts';
import { claim, reap, renew, type Worker } from '../../platform/postgres/work.ts';
import { codeOf } from '../../kernel/errors.ts';
import type { Workflow } from '../domain/workflow.ts';
import { fromStored } from '../domain/workflow-hash.ts';
import type { HeldSaga, SagaSettle, SagaStore, SettleResult } from '../usecase/ports.ts';
import type { DatabaseClock } from './database-clock.ts';
import {
  abortOf,
  isActive,
  logColumns,
  logOrder,
  sagaColumns,
  sagas,
  stateOf,
  type AbortRow,
  type LogRow,
  type SagaRow,
} from './saga-rows.ts';
import { isDeadlineNews, settleSagas, type AddEvents } from './settle-sagas.ts';

export type SagaStoreDeps = Readonly<{
  db: Database;
  worker: Worker;
  time: DatabaseClock;
  /** Null where nobody listens to events. */
  addEvents: AddEvents | null;
}>;

const reapBatch = 500;
const settleWithinMs = 10_000;
const settleBackoff = { initialMs: 20, maxMs: 1000, jitter: 0.2 };
/** A saga that cannot be read here is left to others for so long. */
const unreadablePauseMs = 30_000;

export function createPostgresSagaStore(deps: SagaStoreDeps): SagaStore {
  const { db, worker, time } = deps;
  const definitions = createDefinitions(db);
  return {
    async claim(limit, leaseMs) {
      const { lease, rows } = await claim<SagaRow & { now_ms: number }>(worker, sagas, {
        where: sql`t.wake_at <= now()`,
        orderBy: sql`t.wake_at, t.id`,
        limit,
        leaseMs,
        set: sql`wake_at = NULL`,
        returning: sql`${sagaColumns}, date_part('epoch', clock_timestamp()) * 1000 AS now_ms`,
      });
      const [first] = rows;
      if (first === undefined) return [];
      time.note(first.now_ms);
      const [logs, workflows] = await Promise.all([
        readLogs(db, rows),
        definitions.read(new Set(rows.map((row) => row.definition_hash))),
      ]);
      const unreadable = rows.filter((row) => !workflows.has(row.definition_hash));
      if (unreadable.length > 0) await giveBack(db, unreadable, lease.epoch);
      return rows.flatMap((row) => {
        const workflow = workflows.get(row.definition_hash);
        return workflow === undefined
          ? []
          : [heldSaga(row, { workflow, lease, log: logs.get(row.id) ?? [] })];
      });
    },

    settle: (settles) => settleAll(deps, settles),

    async renew(held, leaseMs) {
      const renewed = await renew<string>(worker, sagas, {
        keys: held.map(({ id }) => id),
        epochs: held.map(({ lease }) => lease.epoch),
        leaseMs,
      });
      return { ids: renewed.keys, endsAtMs: renewed.endsAtMs };
    },

    async reap() {
      const rows = await reap<{ id: string }>(db, sagas, {
        where: sql`t.lease_owner IS NOT NULL`,
        limit: reapBatch,
        set: sql`wake_at = CASE WHEN ${isActive} AND NOT t.needs_person THEN clock_timestamp() END`,
        returning: sql`t.id`,
      });
      return rows.length;
    },

    async nextDueInMs() {
      const [row] = await db.query<{ due_in_ms: number | null; now_ms: number }>(sql`
        SELECT date_part('epoch', min(wake_at) - clock_timestamp()) * 1000 AS due_in_ms,
               date_part('epoch', clock_timestamp()) * 1000 AS now_ms
        FROM saga.saga_states WHERE wake_at IS NOT NULL`);
      if (row !== undefined) time.note(row.now_ms);
      return row?.due_in_ms ?? null;
    },
  };
}

function heldSaga(
  row: SagaRow,
  { workflow, lease, log }: Readonly<{ workflow: Workflow; lease: Lease; log: readonly LogRow[] }>,
): HeldSaga {
  return {
    id: row.id,
    workflow,
    payload: row.payload,
    startedAt: row.created_at.getTime(),
    trace: row.trace,
    state: stateOf(row, log),
    wasLost: row.lease_lost,
    lease,
  };
}

async function readLogs(
  db: Database,
  rows: readonly SagaRow[],
): Promise<ReadonlyMap<string, readonly LogRow[]>> {
  const begun = rows.filter(({ status }) => status !== 'STARTED').map(({ id }) => id);
  if (begun.length === 0) return new Map();
  const logs = await db.query<LogRow>(sql`
    SELECT ${logColumns}
    FROM ${rowsOf(sql`begun`, begun, [[sql`id`, sql`uuid[]`, (id) => id]])}
    JOIN saga.saga_step_logs l ON l.saga_id = begun.id
    ORDER BY ${logOrder}`);
  return Map.groupBy(logs, (row) => row.saga_id);
}

/** Null for what a later version has written: its sagas are for those who understand it. */
function readDefinition(definition: unknown): Workflow | null {
  try {
    return fromStored(definition);
  } catch {
    return null;
  }
}

/** Lets go what was claimed and cannot be driven here. */
async function giveBack(db: Database, rows: readonly SagaRow[], epoch: bigint): Promise<void> {
  await db.query(sql`
    UPDATE saga.saga_states t
    SET lease_owner = NULL, lease_until = NULL,
        wake_at = clock_timestamp() + ${unreadablePauseMs} * interval '1 millisecond'
    WHERE t.id = ANY(${rows.map(({ id }) => id)}::uuid[]) AND t.lease_epoch = ${epoch}`);
}

/** Definitions never change, so each is read once. */
function createDefinitions(db: Database) {
  const known = new Map<string, Workflow>();
  return {
    async read(hashes: ReadonlySet<string>): Promise<ReadonlyMap<string, Workflow>> {
      const missing = [...hashes].filter((hash) => !known.has(hash));
      if (missing.length > 0) {
        const rows = await db.query<{ hash: string; definition: unknown }>(sql`
          SELECT hash, definition FROM saga.workflow_definitions WHERE hash = ANY(${missing}::text[])`);
        for (const { hash, definition } of rows) {
          const workflow = readDefinition(definition);
          if (workflow !== null) known.set(hash, workflow);
        }
      }
      return known;
    },
  };
}

/**
 * Sorted, so that two processes that settle the same sagas wait for each other and do not lock each other out. A
 * process may have a saga twice, once without knowing that it has lost it: only the newest claim can be the true one.
 */
async function settleAll(
  deps: SagaStoreDeps,
  settles: readonly SagaSettle[],
): Promise<readonly SettleResult[]> {
  const sorted = settles.toSorted((a, b) => (a.saga.id < b.saga.id ? -1 : 1));
  const newest = new Map<string, SagaSettle>();
  for (const one of sorted) {
    const { id, lease } = one.saga;
    if (lease.epoch > (newest.get(id)?.saga.lease.epoch ?? -1n)) newest.set(id, one);
  }
  if (newest.size < settles.length) deps.worker.onStale(sagas.slice, settles.length - newest.size);
  const results = new Map<string, SettleResult>();
  await settleBatch(deps, [...newest.values()], results);
  const resultOf = (one: SagaSettle): SettleResult | undefined =>
    newest.get(one.saga.id) === one ? results.get(one.saga.id) : undefined;
  return settles.map((one) => resultOf(one) ?? { outcome: 'stale' });
}

/** A batch that fails on its data is halved down to the culprit; nothing of it was written. */
async function settleBatch(
  deps: SagaStoreDeps,
  settles: readonly SagaSettle[],
  results: Map<string, SettleResult>,
): Promise<void> {
  let settled: ReadonlySet<string>;
  try {
    settled = await settleWithTries(deps, settles);
  } catch (error) {
    if (troubleOf(error) !== 'data') throw error;
    const [only] = settles;
    if (settles.length === 1 && only !== undefined)
      return void results.set(only.saga.id, { outcome: 'unstorable', reason: messageOf(error) });
    const middle = settles.length >> 1;
    await settleBatch(deps, settles.slice(0, middle), results);
    return settleBatch(deps, settles.slice(middle), results);
  }
  for (const id of settled) results.set(id, { outcome: 'settled' });
  const others = settles.filter(({ saga }) => !settled.has(saga.id));
  if (others.length > 0) await explain(deps, others, results);
}

/**
 * Only what was certainly not written is tried again, about as long as a lease lives: after that it is somebody
 * else's. A commit of which nobody knows counts as a lost lease.
 */
async function settleWithTries(
  { db, addEvents, worker }: SagaStoreDeps,
  settles: readonly SagaSettle[],
): Promise<ReadonlySet<string>> {
  const begin = worker.clock.monotonicMs();
  for (let tries = 1; ; tries += 1)
    try {
      return await settleSagas(db, settles, addEvents);
    } catch (error) {
      if (!wasNotWritten(error) || worker.clock.monotonicMs() - begin > settleWithinMs) throw error;
      await sleep(backoffMs(settleBackoff, tries));
    }
}

const notWritten: ReadonlySet<string> = new Set([
  '40001', // serialisation failure
  '40P01', // deadlock
  '55P03', // a lock that could not be had in time
  '57014', // a statement that took too long
  '57P03', // the server starts or stops
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
]);

/** The server rolled it back, or there was no server to send it to. */
function wasNotWritten(error: unknown): boolean {
  const code = codeOf(error) ?? '';
  const hadNoConnection =
    error instanceof Error && error.message.includes('timeout exceeded when trying to connect');
  return notWritten.has(code) || /^53\w{3}$/.test(code) || hadNoConnection;
}

/** Why rows did not match: more is known by now, or they were taken from us. */
async function explain(
  { db, worker }: SagaStoreDeps,
  settles: readonly SagaSettle[],
  results: Map<string, SettleResult>,
): Promise<void> {
  type Row = AbortRow & Readonly<{ id: string; is_ours: boolean; is_over: boolean }>;
  const rows = await db.query<Row>(sql`
    SELECT t.id, t.lease_epoch = held.epoch AND t.lease_owner IS NOT NULL AND ${isActive} AS is_ours,
           t.deadline_over OR (${isDeadlineNews}) IS TRUE AS is_over,
           t.abort_requested, t.abort_actor, t.abort_reason, t.abort_at
    FROM ${rowsOf(sql`held`, settles, [
      [sql`key`, sql`uuid[]`, ({ saga }) => saga.id],
      [sql`epoch`, sql`bigint[]`, ({ saga }) => saga.lease.epoch],
    ])}
    JOIN saga.saga_states t ON t.id = held.key`);
  for (const row of rows)
    if (row.is_ours)
      results.set(row.id, {
        outcome: 'outdated',
        known: { abort: abortOf(row), isDeadlineOver: row.is_over },
      });
  const stale = settles.filter(({ saga }) => !results.has(saga.id)).length;
  if (stale > 0) worker.onStale(sagas.slice, stale);
}
