import type { Clock } from '../../kernel/clock.ts';
import { codeOf, messageOf } from '../../kernel/errors.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { createPlanGuard, type PlanGuard } from '../../platform/postgres/plan-guard.ts';
import { unnestRows } from '../../platform/postgres/unnest-rows.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { createBatchWriter } from '../../platform/work/batch-writer.ts';
import { storeBatch } from '../../platform/work/store-batch.ts';
import type { Worker } from '../../platform/work/work.ts';
import type { Known } from '../domain/saga-state.ts';
import { abortOf, isActive, sagas, type AbortRow } from '../saga-table.ts';
import { isDeadlineNew, writeSagas, type AddEvents, type SagaSettle } from '../write-sagas.ts';
import { faultOf } from './fault-of.ts';

export type SettleResult =
  | Readonly<{ outcome: 'settled' }>
  /** An abort was requested or the deadline passed: the transition has to be computed again with this. */
  | Readonly<{ outcome: 'outdated'; known: Known }>
  /** The lease was lost. */
  | Readonly<{ outcome: 'stale' }>
  /** The database rejects the values. */
  | Readonly<{ outcome: 'unstorable'; reason: string }>
  /** The write failed, and it is unknown whether it was committed. */
  | Readonly<{ outcome: 'unclear'; error: unknown }>;

/** Never rejects. `bytes`: the approximate size of the write. */
export type Settle = (settle: SagaSettle, bytes: number) => Promise<SettleResult>;

type SettleBatch = (settles: readonly SagaSettle[]) => Promise<readonly SettleResult[]>;

/** Writes the transitions of many sagas in batches. */
export function createSettle(settleBatch: SettleBatch, clock: Clock): Settle {
  const writer = createBatchWriter<Readonly<{ settle: SagaSettle; bytes: number }>, SettleResult>({
    clock,
    async writeBatch(items) {
      const results = await settleBatch(items.map(({ settle }) => settle));
      return items.map((_, index) => results[index] ?? { outcome: 'stale' });
    },
    maxItems: 250,
    maxBytes: 4 * 1024 * 1024,
    bytesOf: ({ bytes }) => bytes,
    maxWriters: 3,
    itemsPerWriter: 32,
  });
  return (settle, bytes) =>
    writer.write({ settle, bytes }).catch((error: unknown) => ({ outcome: 'unclear', error }));
}

export type SettleDeps = Readonly<{
  db: Database;
  worker: Worker;
  /** Null if events are not published. */
  addEvents: AddEvents | null;
}>;

/** Results in the order of the settles. */
export function createSettleBatch(deps: SettleDeps): SettleBatch {
  const planGuard = createPlanGuard(deps.worker.clock);
  return (settles) => settleBatch({ ...deps, planGuard }, settles);
}

type BatchDeps = SettleDeps & Readonly<{ planGuard: PlanGuard }>;

/**
 * Sorted by id, so that two processes that settle the same sagas do not deadlock. A process may have a saga twice, once
 * without knowing that its lease was lost: only the newest claim can be valid.
 */
async function settleBatch(
  deps: BatchDeps,
  settles: readonly SagaSettle[],
): Promise<readonly SettleResult[]> {
  const sorted = settles.toSorted((a, b) => (a.saga.id < b.saga.id ? -1 : 1));
  const newest = new Map<string, SagaSettle>();
  for (const one of sorted) {
    const { id, lease } = one.saga;
    if (lease.epoch > (newest.get(id)?.saga.lease.epoch ?? -1n)) newest.set(id, one);
  }
  if (newest.size < settles.length) deps.worker.onStale(sagas.slice, settles.length - newest.size);
  const results = await settleNewest(deps, [...newest.values()]);
  const resultOf = (one: SagaSettle): SettleResult | undefined =>
    newest.get(one.saga.id) === one ? results.get(one.saga.id) : undefined;
  return settles.map((one) => resultOf(one) ?? { outcome: 'stale' });
}

/** About as long as a lease lives: after that, another worker may have the saga. */
const retryForMs = 10_000;

/** Only a write that was certainly not committed is retried. An unclear commit counts as a lost lease. */
async function settleNewest(
  deps: BatchDeps,
  settles: readonly SagaSettle[],
): Promise<ReadonlyMap<string, SettleResult>> {
  const { db, addEvents, planGuard } = deps;
  const results = new Map<string, SettleResult>();
  const failure = await storeBatch(settles, {
    async store(batch) {
      const settled = await planGuard.run((isPrepared) => writeSagas(db, batch, addEvents, { isPrepared }));
      for (const id of settled) results.set(id, { outcome: 'settled' });
    },
    async storeBad({ saga }, error) {
      results.set(saga.id, { outcome: 'unstorable', reason: messageOf(error) });
    },
    isBadData: (error) => faultOf(error) === 'values',
    isRetryable: wasNotWritten,
    until: AbortSignal.timeout(retryForMs),
  }).then(
    () => null,
    (error: unknown) => ({ error }),
  );
  const unmatched = settles.filter(({ saga }) => !results.has(saga.id));
  if (failure !== null) {
    // A batch that was halved may have been stored in part.
    for (const { saga } of unmatched) results.set(saga.id, { outcome: 'unclear', error: failure.error });
    return results;
  }
  if (unmatched.length > 0) await explain(deps, unmatched, results);
  return results;
}

const notWritten: ReadonlySet<string> = new Set([
  '40001', // serialisation failure
  '40P01', // deadlock
  '55P03', // lock timeout
  '57014', // statement timeout
  '57P03', // the server starts or stops
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
]);

/** The server rolled it back, refused the connection, or could not be reached. */
function wasNotWritten(error: unknown): boolean {
  const code = codeOf(error) ?? '';
  const hadNoConnection =
    error instanceof Error && error.message.includes('timeout exceeded when trying to connect');
  return notWritten.has(code) || /^53\w{3}$/.test(code) || hadNoConnection || faultOf(error) === 'setup';
}

/** Finds out why rows did not match: something new is known about the saga, or its lease was lost. */
async function explain(
  { db, worker }: SettleDeps,
  settles: readonly SagaSettle[],
  results: Map<string, SettleResult>,
): Promise<void> {
  type Row = AbortRow & Readonly<{ id: string; is_ours: boolean; is_over: boolean }>;
  const rows = await db.query<Row>(sql`
    SELECT t.id, t.lease_epoch = leased.epoch AND t.lease_owner IS NOT NULL AND ${isActive} AS is_ours,
           t.deadline_over OR (${isDeadlineNew}) IS TRUE AS is_over,
           t.abort_requested, t.abort_actor, t.abort_reason, t.abort_at
    FROM ${unnestRows(sql`leased`, settles, [
      [sql`key`, sql`uuid[]`, ({ saga }) => saga.id],
      [sql`epoch`, sql`bigint[]`, ({ saga }) => saga.lease.epoch],
    ])}
    JOIN saga.saga_states t ON t.id = leased.key`);
  for (const row of rows)
    if (row.is_ours)
      results.set(row.id, {
        outcome: 'outdated',
        known: { abort: abortOf(row), isDeadlineOver: row.is_over },
      });
  const stale = settles.filter(({ saga }) => !results.has(saga.id)).length;
  if (stale > 0) worker.onStale(sagas.slice, stale);
}
