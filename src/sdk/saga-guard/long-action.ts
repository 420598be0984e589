import { sleep } from '../../kernel/clock.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { PostgresClient } from '../postgres-pool.ts';
import type { GuardedCall, SagaCall } from './guard-call.ts';
import { SagaRefusal, replyOf } from './guard-reply.ts';
import { settleRow, type StepKey } from './guard-table.ts';
import { withClient } from '../with-client.ts';
import { askerOf, inGuardTransaction, type TextRow } from './guard-transaction.ts';
import {
  act,
  beginAction,
  callFor,
  guarded,
  replyToAction,
  type Begun,
  type Guarded,
  type GuardDeps,
} from './guarded-action.ts';

/**
 * An action that takes longer than a call may. `work` runs outside any transaction and must have no lasting effect;
 * `effect` gets its result and does the action in one short transaction, together with the change of the row.
 */
export type LongAction<Body = unknown, Work = unknown, Answer = unknown, Client = PostgresClient> = Readonly<{
  /** Should stop at the signal: the action is to be undone, its lease is lost, or the guard stops. */
  work: (call: SagaCall<Body>, signal: AbortSignal) => Promise<Work>;
  effect: (tx: Client, work: Work, call: SagaCall<Body>) => Answer | Promise<Answer>;
  /** How long after its process died another one may take it over; a minute by default. */
  leaseMs?: number;
}>;

/** The long actions that run in this process. */
export type LongRuns = Readonly<{
  start(run: (stopping: AbortSignal) => Promise<void>): void;
  stop(): Promise<void>;
}>;

export function createLongRuns(): LongRuns {
  const stopping = new AbortController();
  const running = new Set<Promise<void>>();
  return {
    start(run) {
      const ended = run(stopping.signal).finally(() => running.delete(ended));
      running.add(ended);
    },
    async stop() {
      stopping.abort(new Error('the guard is stopping'));
      await Promise.all(running);
    },
  };
}

const USUAL_LEASE_MS = 60_000;
const MIN_LEASE_MS = 50;
const MAX_COMPLETIONS = 15;

/**
 * The first call only begins it: it commits `working` and responds 202; repeated calls poll for the end. A call after the
 * process has died restarts it, under the next run.
 */
export function guardLongAction(deps: GuardDeps, runs: LongRuns, action: LongAction): Guarded {
  const leaseMs = action.leaseMs ?? USUAL_LEASE_MS;
  if (!(leaseMs >= MIN_LEASE_MS)) throw new RangeError(`leaseMs must be at least ${MIN_LEASE_MS}`);
  return guarded(deps, 'action', async (call) => {
    const ended = await inGuardTransaction<Exclude<Begun, { do: 'again' }>>(deps.pool, async (tx) => {
      const begun = await beginAction(deps, tx, call, leaseMs);
      if (begun.do === 'again') return { end: 'again' };
      return { end: begun.do === 'begin' ? 'commit' : 'rollback', value: begun };
    });
    if (ended.end === 'busy') return replyOf('working');
    const begun = ended.value;
    if (begun.do !== 'begin') return replyToAction(begun);
    runs.start((stopping) => runLongAction(deps, action, { call, run: begun.run, leaseMs, stopping }));
    return replyOf('working');
  });
}

type Run = Readonly<{ call: GuardedCall; run: number; leaseMs: number; stopping: AbortSignal }>;

/** Never rejects: errors are reported and the lease released, so that the next call restarts it. */
async function runLongAction(deps: GuardDeps, action: LongAction, run: Run): Promise<void> {
  const told = callFor(run.call);
  const over = new AbortController();
  const lost = new AbortController();
  const renewing = keepLease(deps, run, over.signal, lost);
  let isDone = false;
  try {
    const signal = AbortSignal.any([lost.signal, run.stopping]);
    const made = await workOrRefusal(() => action.work(told, signal));
    // From here on the row lock excludes all others.
    over.abort();
    isDone = await complete(deps, run, (client) =>
      made instanceof SagaRefusal ? made : action.effect(client, made, told),
    );
  } catch (error) {
    if (!lost.signal.aborted && !run.stopping.aborted) deps.onError(error, told);
  }
  over.abort();
  await renewing;
  if (!isDone) await letGo(deps, run).catch((error: unknown) => deps.onError(error, told));
}

async function workOrRefusal(work: () => Promise<unknown>): Promise<unknown> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof SagaRefusal) return error;
    throw error;
  }
}

/**
 * Commits the effect together with the change from working to done, if this run still owns the action and no undo was
 * requested; else returns false. The row stays locked until the commit, so an undo waits and then finds it done.
 */
async function complete(
  deps: GuardDeps,
  { call, run }: Run,
  effect: (client: PostgresClient) => unknown,
): Promise<boolean> {
  // Others lock the row only for a moment, to read it.
  for (let attempt = 0; attempt < MAX_COMPLETIONS; attempt += 1) {
    const ended = await inGuardTransaction<boolean>(deps.pool, async (tx) => {
      const [row] = await tx.ask(sql`
        UPDATE ${deps.table} SET phase = 'done', lease_until = NULL, settled_at = clock_timestamp()
        WHERE saga_id = ${call.sagaId} AND step = ${call.step}
          AND phase = 'working' AND run = ${run} AND NOT undo_requested
        RETURNING phase`);
      if (row === undefined) return { end: 'rollback', value: false };
      await act(deps, tx, call, () => effect(tx.client));
      return { end: 'commit', value: true };
    });
    if (ended.end === 'ended') return ended.value;
  }
  throw new Error('the row of this step is locked by another transaction');
}

/** Ends this run: void if an undo was requested, else released for the next call. */
async function letGo({ pool, table }: GuardDeps, { call, run }: Run): Promise<void> {
  await inGuardTransaction<null>(pool, async ({ ask }) => {
    const [row] = await ask(sql`
      UPDATE ${table} SET lease_until = clock_timestamp()
      WHERE saga_id = ${call.sagaId} AND step = ${call.step} AND phase = 'working' AND run = ${run}
      RETURNING undo_requested::text`);
    if (row?.['undo_requested'] === 'true')
      await settleRow(ask, table, call, { from: 'working', to: 'void', answer: null });
    return { end: 'commit', value: null };
  });
}

/** Renews the lease until it is stopped; aborts the work if the lease is lost or an undo was requested. */
async function keepLease(
  deps: GuardDeps,
  { call, run, leaseMs }: Run,
  over: AbortSignal,
  lost: AbortController,
): Promise<void> {
  let endsAtMs = performance.now() + leaseMs;
  for (;;) {
    await sleep(leaseMs / 3, over);
    if (over.aborted || lost.signal.aborted) return;
    const askedAtMs = performance.now();
    try {
      const row = await renew(deps, call, run, leaseMs);
      if (row === undefined) lost.abort(new Error('another process has taken it over, or it was undone'));
      else if (row['undo_requested'] === 'true') lost.abort(new Error('its undo was requested'));
      else endsAtMs = askedAtMs + leaseMs;
    } catch {
      // The database is unavailable: retries until the lease expires.
      if (performance.now() >= endsAtMs) lost.abort(new Error('its lease expired'));
    }
  }
}

function renew(
  { pool, table }: GuardDeps,
  key: StepKey,
  run: number,
  leaseMs: number,
): Promise<TextRow | undefined> {
  return withClient(
    () => pool.connect(),
    async (client) => {
      const [row] = await askerOf(client)(sql`
      UPDATE ${table} SET lease_until = clock_timestamp() + ${leaseMs}::float8 * interval '1 millisecond'
      WHERE saga_id = ${key.sagaId} AND step = ${key.step} AND phase = 'working' AND run = ${run}
      RETURNING undo_requested::text`);
      return row;
    },
  );
}
