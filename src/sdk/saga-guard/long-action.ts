import type { ClientBase } from 'pg';
import { sleep } from '../../kernel/clock.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { GuardedCall, SagaCall } from './guard-call.ts';
import { SagaRefusal, replyOf } from './guard-reply.ts';
import { settleRow, type StepKey } from './guard-table.ts';
import { askerOf, inGuardTransaction, withClient, type TextRow } from './guard-transaction.ts';
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
 * An action that takes longer than a caller waits. `work` runs outside of any transaction and must change nothing
 * that counts; `effect` gets what it made and does the action in one short transaction, together with the row that
 * says so.
 */
export type LongAction<Body = unknown, Work = unknown, Answer = unknown> = Readonly<{
  /** Should stop at the signal: its saga wants it undone, its lease is lost, or the guard stops. */
  work: (call: SagaCall<Body>, signal: AbortSignal) => Promise<Work>;
  effect: (tx: ClientBase, work: Work, call: SagaCall<Body>) => Answer | Promise<Answer>;
  /** How long after the death of its process somebody else takes it over; a minute by default. */
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
      stopping.abort(new Error('the guard stops'));
      await Promise.all(running);
    },
  };
}

const USUAL_LEASE_MS = 60_000;
const MIN_LEASE_MS = 50;
const MAX_COMPLETIONS = 15;

/**
 * The call only begins it: `working` is committed, then it is answered 202, and the same call asks for its end. Who
 * calls again after the process has died begins it anew, under the next run.
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

/** Never rejects: what goes wrong is reported, and the lease given back, so that the next call begins it anew. */
async function runLongAction(deps: GuardDeps, action: LongAction, run: Run): Promise<void> {
  const told = callFor(run.call);
  const over = new AbortController();
  const lost = new AbortController();
  const renewing = keepLease(deps, run, over.signal, lost);
  let isDone = false;
  try {
    const signal = AbortSignal.any([lost.signal, run.stopping]);
    const made = await workOrRefusal(() => action.work(told, signal));
    // From here on the row's own lock keeps everybody else away.
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
 * The effect commits only together with the step from working to done, and that only while this run has it and
 * nobody wants it undone; false if not. The row stays locked until the commit, so an undo waits and then finds it
 * done.
 */
async function complete(
  deps: GuardDeps,
  { call, run }: Run,
  effect: (client: ClientBase) => unknown,
): Promise<boolean> {
  // Whoever else holds the row only looks at it, and lets it go within moments.
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
  throw new Error('somebody else holds the row of this step');
}

/** Ends what is still this run's: void where an undo waits for it, else free for the next call. */
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

/** Renews until told to stop; the work is told when the lease is lost or somebody wants the action undone. */
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
      if (row === undefined) lost.abort(new Error('somebody else has taken it over, or it is undone'));
      else if (row['undo_requested'] === 'true') lost.abort(new Error('its saga wants it undone'));
      else endsAtMs = askedAtMs + leaseMs;
    } catch {
      // The database is away; it is tried again for as long as there is a lease to renew.
      if (performance.now() >= endsAtMs) lost.abort(new Error('its lease is over'));
    }
  }
}

function renew(
  { pool, table }: GuardDeps,
  key: StepKey,
  run: number,
  leaseMs: number,
): Promise<TextRow | undefined> {
  return withClient(pool, async (client) => {
    const [row] = await askerOf(client)(sql`
      UPDATE ${table} SET lease_until = clock_timestamp() + ${leaseMs}::float8 * interval '1 millisecond'
      WHERE saga_id = ${key.sagaId} AND step = ${key.step} AND phase = 'working' AND run = ${run}
      RETURNING undo_requested::text`);
    return row;
  });
}
