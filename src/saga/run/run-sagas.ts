import { onceAborted, sleep, type Clock } from '../../kernel/clock.ts';
import { messageOf } from '../../kernel/errors.ts';
import type { Service } from '../../kernel/service.ts';
import { restAfterErrorMs } from '../../platform/work/work.ts';
import { advance, type Advance, type EngineEvent } from '../domain/advance.ts';
import { MAX_FAILED_ROUNDS } from '../domain/failed-rounds.ts';
import { judgeMappingError } from '../domain/judge-answer.ts';
import { withKnown } from '../domain/saga-state.ts';
import type { Call, Context, Settlement } from '../domain/settlement.ts';
import type { SagaSettle } from '../write-sagas.ts';
import {
  buildSettle,
  firstEvent,
  mustRunAlone,
  settledSaga,
  withoutAnswer,
  type Continuation,
} from './build-settle.ts';
import type { CallSemaphore, Permit } from './call-semaphore.ts';
import type { SagaClaim } from './claim-sagas.ts';
import { createLeasedSagas, type LeasedSaga, type LeasedSagas } from './leased-sagas.ts';
import { makeRequest } from './make-request.ts';
import { renewLeases, type RenewDeps } from './renew-leases.ts';
import { runAloneSagas, type AloneState } from './run-alone.ts';
import { claimWithCircuits, noCircuits, type ServiceCircuits } from './service-circuits.ts';
import type { SendCall } from './services/service.ts';
import type { Settle } from './settle-sagas.ts';
import { takeProbe } from './take-probe.ts';

/**
 * The saga engine. It claims due sagas and runs each of them in rounds, many sagas in parallel:
 *
 *   claim    leases due sagas; the first event of a saga is `claimed`, `worker_lost` or `given_up`
 *   advance  computes the transition that the event causes (domain/advance.ts), without I/O
 *   permit   limits the calls in flight; a saga that gets no permit is released, or waits for one
 *   settle   writes the transition; if a call follows, with the open row of its attempt
 *   call     sends the request, while the lease is alive; the answer is the next event
 *
 * A saga goes STARTED -> RUNNING -> COMPLETED, step by step. If a step fails for good, or an abort or the deadline ends
 * it, it goes RUNNING -> COMPENSATING and undoes its steps in reverse order -> FAILED or CANCELLED. A step whose outcome
 * only an operator can find out leaves it stuck, in RUNNING or COMPENSATING (domain/saga-state.ts).
 *
 * It leaves the engine, and its lease ends, when it waits for a time or a service, needs attention, has ended, or gets
 * no permit. A call is sent only after its open row is stored, so the process that claims the saga after a crash finds in its log
 * what may have been called. A saga that cannot be processed fails its round and backs off; after too many failed rounds
 * it needs attention. A saga that has crashed its process runs alone (run-alone.ts).
 */
export type EngineDeps = Readonly<{
  clock: Clock;
  /** On the database's clock, as far as this process knows it. */
  now: () => number;
  random: () => number;
  claim: (options: SagaClaim) => Promise<readonly LeasedSaga[]>;
  hasDueAlone: () => Promise<boolean>;
  /** Null if no saga is scheduled. */
  nextDueInMs: () => Promise<number | null>;
  settle: Settle;
  /** Releases a saga that could not be processed. */
  failRound: (saga: LeasedSaga) => Promise<void>;
  renew: RenewDeps['renew'];
  calls: CallSemaphore;
  /** Without circuits, every service is called at any time. */
  circuits?: ServiceCircuits;
  send: SendCall;
  serviceOf: Context['serviceOf'];
  waitForWork: (ms: number, signal: AbortSignal) => Promise<unknown>;
  /** In place of `waitForWork` while no saga is leased; see `waitForDue` in platform/work. */
  waitForDue?: (ms: number, signal: AbortSignal) => Promise<unknown>;
  /** The saga before the settle, and what was written. */
  onSettled: (saga: LeasedSaga, written: SagaSettle) => void;
  onError: (what: string, error: unknown) => void;
  beat?: () => void;
}>;

export type EngineOptions = Readonly<{
  /** How many sagas this process leases: those with a call in flight, and those that wait for a permit. */
  maxLeased: number;
  leaseMs: number;
  pollMs: number;
}>;

export type SagaEngine = Service & Readonly<{ leasedCount(): number; leasedBytes(): number }>;

type Engine = Required<EngineDeps> & {
  readonly options: EngineOptions;
  readonly leased: LeasedSagas;
  readonly stopping: AbortSignal;
  readonly alone: AloneState;
  /** Aborted when a saga that was released here is due again. */
  due: AbortController;
};

export function createSagaEngine(deps: EngineDeps, options: EngineOptions): SagaEngine {
  const stop = new AbortController();
  const engine: Engine = {
    circuits: noCircuits,
    beat: () => {},
    ...deps,
    claim: claimWithCircuits(deps),
    options,
    waitForDue: deps.waitForDue ?? deps.waitForWork,
    leased: createLeasedSagas(deps.clock),
    stopping: stop.signal,
    alone: { isMakingRoom: false, checkAtMs: 0 },
    due: new AbortController(),
  };
  let loops: Promise<unknown> = Promise.resolve();
  return {
    name: 'saga engine',
    leasedCount: engine.leased.size,
    leasedBytes: engine.leased.bytes,
    async start() {
      const renewal = { ...engine, leaseMs: options.leaseMs };
      loops = Promise.all([claimLoop(engine), renewLeases(renewal, stop.signal)]);
    },
    async stop(deadline) {
      stop.abort();
      deps.calls.rejectWaiting();
      await Promise.race([loops, onceAborted(deadline)]);
    },
  };
}

const claimBatch = 200;
/** Limit for all leased sagas together; one more may come on top. In memory JSON takes several times its size. */
const maxBytes = 16 * 1024 * 1024;
/** A claim costs about the same for one saga as for a hundred, so it waits a moment for more room. */
const waitForRoomMs = 20;
/** A saga is due that could not be claimed, because another transaction has locked it. */
const overdueRetryMs = 50;

async function claimLoop(engine: Engine): Promise<void> {
  const { stopping, onError } = engine;
  while (!stopping.aborted)
    try {
      await runAloneSagas(engine, (saga) => void runAndRemove(engine, saga));
      await claimAndRun(engine).then(engine.beat);
    } catch (error) {
      if (!stopping.aborted) onError('claiming sagas', error);
      await sleep(restAfterErrorMs, stopping);
    }
}

async function claimAndRun(engine: Engine): Promise<void> {
  const { leased, options, stopping } = engine;
  const { maxLeased, leaseMs, pollMs } = options;
  if (leased.size() >= maxLeased || leased.bytes() >= maxBytes)
    return leased.waitForRoom(maxLeased, pollMs, stopping);
  const enough = Math.min(claimBatch, Math.ceil(maxLeased / 4));
  if (maxLeased - leased.size() < enough)
    await leased.waitForRoom(maxLeased - enough, waitForRoomMs, stopping);
  // Sagas claimed after a stop would only be released again.
  if (stopping.aborted) return;
  engine.due = new AbortController();
  const sagas = await engine.claim({
    limit: Math.min(claimBatch, maxLeased - leased.size()),
    bytes: Math.max(1, maxBytes - leased.bytes()),
    leaseMs,
    alone: false,
  });
  for (const saga of sagas) {
    leased.add(saga);
    void runAndRemove(engine, saga);
  }
  if (sagas.length > 0) return;
  const dueInMs = (await engine.nextDueInMs()) ?? pollMs;
  const waitMs = Math.min(pollMs, dueInMs > 0 ? Math.max(1, dueInMs) : overdueRetryMs);
  const wait = leased.size() === 0 && waitMs === pollMs ? engine.waitForDue : engine.waitForWork;
  await wait(waitMs, AbortSignal.any([stopping, engine.due.signal]));
}

async function runAndRemove(engine: Engine, saga: LeasedSaga): Promise<void> {
  try {
    await runSaga(engine, saga);
  } catch (error) {
    // Its lease expires.
    engine.onError(`releasing saga ${saga.id}`, error);
  } finally {
    engine.leased.remove(saga);
  }
}

/** A saga in the engine: as the database has it, its last event, its permit, and the service that it probes. */
type Run = { saga: LeasedSaga; event: EngineEvent; permit: Permit | null; probe: string | null };

async function runSaga(engine: Engine, claimed: LeasedSaga): Promise<void> {
  const run: Run = { saga: claimed, event: firstEvent(claimed), permit: null, probe: null };
  try {
    run.probe = await takeProbe(engine.circuits, claimed);
    await runRounds(engine, run);
  } catch (error) {
    engine.onError(`running saga ${claimed.id}`, error);
    await failOrGiveUp(engine, run, error);
  } finally {
    releasePermit(run);
    if (run.probe !== null) engine.circuits.releaseProbe(run.probe, claimed.id);
  }
}

async function runRounds(engine: Engine, run: Run): Promise<void> {
  for (;;) {
    const call = await settleNext(engine, run);
    // The lease also matters for a poll, which stores nothing beforehand.
    if (call === null || !engine.leased.isAlive(run.saga)) return;
    await callService(engine, run, call);
  }
}

/** Advances the saga and settles it. Returns the call to be made now; null if the saga was released or lost. */
async function settleNext(engine: Engine, run: Run): Promise<Call | null> {
  for (;;) {
    const advanced = advanceSaga(engine, run);
    if (advanced.outcome === 'stale') return null;
    const { saga } = run;
    const { next } = advanced;
    const service = next.do === 'call' || next.do === 'poll' ? next.call.service : null;
    if (service === null || !mayCall(engine, run, advanced)) releasePermit(run);
    // Time has passed: the transition is computed again.
    else if (await waitForPermit(engine, run, service)) continue;
    const continuation = continuationOf(engine, run, advanced, service);
    if (next.do === 'poll' && continuation === 'calls') {
      run.saga = { ...saga, state: advanced.state };
      return next.call;
    }
    const isSettled = await settle(engine, run, advanced, continuation);
    if (isSettled === 'left') return null;
    if (isSettled === 'again') continue;
    if (continuation !== 'waits') return next.do === 'call' && continuation === 'calls' ? next.call : null;
    run.event = { kind: 'claimed' };
  }
}

function advanceSaga(engine: Engine, { saga, event, probe }: Run): Advance {
  const { circuits, random, serviceOf } = engine;
  const isDown = (service: string): boolean => circuits.isOpen(service) && probe !== service;
  return advance(saga.workflow, saga.state, event, { now: engine.now(), random, serviceOf, isDown });
}

/**
 * Whether the next call may be made here. Not while the engine stops or makes room, and not after an answer if the saga
 * runs alone or the leased sagas are too large: the call is left to the next claim.
 */
function mayCall(engine: Engine, { saga, event }: Run, { state }: Settlement): boolean {
  const { leased, stopping, alone } = engine;
  if (stopping.aborted || mustRunAlone(saga, event, state)) return false;
  const isAnswered = event.kind === 'answered';
  if (saga.runsAlone) return !isAnswered;
  return !alone.isMakingRoom && (!isAnswered || leased.bytes() <= maxBytes || leased.size() === 1);
}

/** Whether the saga has a permit now that it had to wait for. */
async function waitForPermit({ calls }: Engine, run: Run, service: string): Promise<boolean> {
  const isAnswered = run.event.kind === 'answered';
  // Each call needs a permit of its own, also to the same service.
  if (run.permit?.service === service && !isAnswered) return false;
  run.permit = run.permit === null ? calls.tryAcquire(service) : run.permit.exchange(service);
  // An answer is written first; the saga waits for a permit after that.
  if (run.permit !== null || isAnswered) return false;
  run.permit = await calls.acquire(service);
  return run.permit !== null;
}

function releasePermit(run: Run): void {
  run.permit?.release();
  run.permit = null;
}

function continuationOf(
  engine: Engine,
  run: Run,
  advanced: Settlement,
  service: string | null,
): Continuation {
  if (service === null || !mayCall(engine, run, advanced)) return 'released';
  if (run.permit?.service === service) return 'calls';
  return run.event.kind === 'answered' ? 'waits' : 'backs off';
}

/** `left`: the saga is no longer ours. `again`: the transition has to be computed again. */
async function settle(
  engine: Engine,
  run: Run,
  advanced: Settlement,
  continuation: Continuation,
): Promise<'settled' | 'left' | 'again'> {
  const { saga, event } = run;
  const { random, calls } = engine;
  const context = { event, continuation, now: engine.now(), random, backoffMs: calls.backoffMs };
  const written = buildSettle(saga, advanced, context);
  const result = await engine.settle(written, saga.bytes);
  switch (result.outcome) {
    case 'settled':
      run.saga = settledSaga(saga, written);
      noteSettled(engine, saga, written);
      return 'settled';
    case 'stale':
      return 'left';
    case 'unclear':
      // Treated like a lost lease, which expires.
      engine.onError(`settling saga ${saga.id}`, result.error);
      return 'left';
    case 'outdated':
      run.saga = { ...saga, state: withKnown(saga.state, result.known) };
      return 'again';
    case 'unstorable':
      run.event = withoutAnswer(event, result.reason);
      return 'again';
  }
}

/** If a saga that is released is due again soon, the claim loop does not wait for the next poll. */
function noteSettled(engine: Engine, saga: LeasedSaga, written: SagaSettle): void {
  engine.leased.resize(saga);
  engine.onSettled(saga, written);
  const { wakeAt } = written.state;
  if (written.keepsLease || wakeAt === null) return;
  const inMs = Math.max(1, wakeAt - engine.now());
  if (inMs < engine.options.pollMs) setTimeout(() => engine.due.abort(), inMs).unref();
}

async function callService(engine: Engine, run: Run, call: Call): Promise<void> {
  const { saga } = run;
  const made = makeRequest(saga, call);
  const answer = made.ok
    ? await engine.send({
        saga,
        call,
        stepName: saga.workflow.steps[call.step]?.name ?? '',
        epoch: saga.lease.epoch,
        mayBegin: () => engine.leased.isAlive(saga),
        ...made,
      })
    : judgeMappingError(made.defect);
  const isProbe = run.probe === call.service;
  if (isProbe) run.probe = null;
  engine.circuits.note(call.service, { sagaId: saga.id, answer, isProbe });
  run.event = { kind: 'answered', ...call, answer, isProbe };
  if (answer.class === 'done')
    run.saga = { ...saga, bytes: saga.bytes + (JSON.stringify(answer.output)?.length ?? 0) };
}

/** The last failed round records why the saga needs attention. */
async function failOrGiveUp(engine: Engine, run: Run, error: unknown): Promise<void> {
  if (run.saga.failedRounds + 1 !== MAX_FAILED_ROUNDS) return engine.failRound(run.saga);
  run.event = { kind: 'given_up', reason: `it cannot be processed: ${messageOf(error)}` };
  await runRounds(engine, run).catch(async (again: unknown) => {
    engine.onError(`giving up saga ${run.saga.id}`, again);
    await engine.failRound(run.saga);
  });
}
