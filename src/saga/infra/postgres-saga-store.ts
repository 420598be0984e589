import { backoffMs } from '../../kernel/backoff.ts';
import { sleep } from '../../kernel/clock.ts';
import { codeOf, messageOf } from '../../kernel/errors.ts';
import { createKeptReady, type KeptReady } from '../../platform/postgres/kept-ready.ts';
import { rowsOf } from '../../platform/postgres/rows-of.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { reap, renew } from '../../platform/postgres/work.ts';
import { ALONE_FROM } from '../domain/setbacks.ts';
import type { SagaSettle, SagaStore, SettleResult } from '../usecase/ports.ts';
import { createSagaClaims, type SagaClaimDeps } from './claim-sagas.ts';
import { faultOf } from './fault-of.ts';
import { giveBack } from './give-back.ts';
import { abortOf, isActive, sagas, type AbortRow } from './saga-rows.ts';
import { isDeadlineNews, settleSagas, type AddEvents } from './settle-sagas.ts';

export type SagaStoreDeps = SagaClaimDeps &
  Readonly<{
    /** Null where nobody listens to events. */
    addEvents: AddEvents | null;
  }>;

type SettleDeps = SagaStoreDeps & Readonly<{ keptReady: KeptReady }>;

const reapBatch = 500;
const settleWithinMs = 10_000;
const settleBackoff = { initialMs: 20, maxMs: 1000, jitter: 0.2 };

export function createPostgresSagaStore(deps: SagaStoreDeps): SagaStore {
  const { db, worker, time } = deps;
  const keptReady = createKeptReady(db, worker.clock, ['saga.saga_states', 'saga.saga_step_logs']);
  return {
    claim: createSagaClaims(deps),

    settle: (settles) => settleAll({ ...deps, keptReady }, settles),

    async renew(held, leaseMs) {
      const renewed = await renew<string>(worker, sagas, {
        keys: held.map(({ id }) => id),
        epochs: held.map(({ lease }) => lease.epoch),
        leaseMs,
      });
      return { ids: renewed.keys, locked: renewed.locked, endsAtMs: renewed.endsAtMs };
    },

    async reap() {
      const rows = await reap<{ id: string }>(db, sagas, {
        where: sql`t.lease_owner IS NOT NULL`,
        limit: reapBatch,
        set: sql`
          wake_at = CASE WHEN ${isActive} AND NOT t.needs_person THEN clock_timestamp() END,
          setbacks = t.setbacks + 1, runs_alone = t.runs_alone OR t.setbacks + 1 >= ${ALONE_FROM}`,
        returning: sql`t.id`,
      });
      return rows.length;
    },

    setBack: (saga, pauseMs) => giveBack(db, saga.lease, [{ id: saga.id, pauseMs, isSetback: true }]),

    async hasAlone() {
      const [row] = await db.query<{ has_alone: boolean }>(sql`
        SELECT EXISTS (SELECT 1 FROM saga.saga_states WHERE runs_alone AND wake_at <= now())
           AND NOT EXISTS (SELECT 1 FROM saga.saga_states WHERE runs_alone AND lease_owner IS NOT NULL) AS has_alone`);
      return row?.has_alone === true;
    },

    /** What is long due and still there is somebody's this moment; a claim looks at it again soon enough. */
    async nextDueInMs() {
      const [row] = await db.query<{ due_in_ms: number | null; now_ms: number }>(sql`
        SELECT date_part('epoch', min(wake_at) - clock_timestamp()) * 1000 AS due_in_ms,
               date_part('epoch', clock_timestamp()) * 1000 AS now_ms
        FROM saga.saga_states WHERE wake_at > now() - interval '2 seconds' AND NOT runs_alone`);
      if (row !== undefined) time.note(row.now_ms);
      return row?.due_in_ms ?? null;
    },
  };
}

/**
 * Sorted, so that two processes that settle the same sagas wait for each other and do not lock each other out. A
 * process may have a saga twice, once without knowing that it has lost it: only the newest claim can be the true one.
 */
async function settleAll(deps: SettleDeps, settles: readonly SagaSettle[]): Promise<readonly SettleResult[]> {
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
  deps: SettleDeps,
  settles: readonly SagaSettle[],
  results: Map<string, SettleResult>,
): Promise<void> {
  let settled: ReadonlySet<string>;
  try {
    settled = await settleWithTries(deps, settles);
  } catch (error) {
    if (faultOf(error) !== 'values') throw error;
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
  { db, addEvents, worker, keptReady }: SettleDeps,
  settles: readonly SagaSettle[],
): Promise<ReadonlySet<string>> {
  const begin = worker.clock.monotonicMs();
  for (let tries = 1; ; tries += 1)
    try {
      return await keptReady.run((isPrepared) => settleSagas(db, settles, addEvents, { isPrepared }));
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

/** The server rolled it back or would not have us at all, or there was no server to send it to. */
function wasNotWritten(error: unknown): boolean {
  const code = codeOf(error) ?? '';
  const hadNoConnection =
    error instanceof Error && error.message.includes('timeout exceeded when trying to connect');
  return notWritten.has(code) || /^53\w{3}$/.test(code) || hadNoConnection || faultOf(error) === 'setup';
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
