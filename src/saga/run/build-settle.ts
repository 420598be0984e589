import { MAX_FAILED_ROUNDS, hasOneAttemptLeft } from '../domain/failed-rounds.ts';
import type { EngineEvent } from '../domain/advance.ts';
import type { Failure } from '../domain/judge-answer.ts';
import type { SagaState } from '../domain/saga-state.ts';
import type { Next, Settlement } from '../domain/settlement.ts';
import type { AddedAttempt, SagaSettle } from '../write-sagas.ts';
import type { LeasedSaga } from './leased-sagas.ts';
import { makeRequest } from './make-request.ts';

/**
 * What happens to the saga after this settle. `calls`: its next call follows, and the attempt is stored as open. `waits`:
 * it keeps its lease and waits for a permit. `backs off`: it is released, because no permit will be free for some time.
 * `released`: it is released; if a call is next, another worker may make it at once.
 */
export type Continuation = 'calls' | 'waits' | 'backs off' | 'released';

export type SettleContext = Readonly<{
  event: EngineEvent;
  continuation: Continuation;
  /** On the database's clock. */
  now: number;
  random: () => number;
  backoffMs: (service: string) => number;
}>;

export function buildSettle(saga: LeasedSaga, settlement: Settlement, context: SettleContext): SagaSettle {
  const { state, changed, added, events, next } = settlement;
  const { event, continuation } = context;
  const opened = next.do === 'call' && continuation === 'calls' ? openAttempt(saga, next) : null;
  const isStarting = saga.state.status === 'STARTED' && (state.status !== 'STARTED' || opened !== null);
  return {
    saga,
    known: { abort: saga.state.abort, isDeadlineOver: saga.state.isDeadlineOver },
    state: opened?.state ?? { ...state, wakeAt: wakeAtOf(settlement, context) },
    changed,
    added: opened === null ? added : [...added, opened.row],
    events: [...(isStarting ? (['SAGA_STARTED'] as const) : []), ...events, ...(opened?.events ?? [])],
    keepsLease: opened !== null || continuation === 'waits',
    ...failedRoundsAfter(saga, event, state),
  };
}

/** The saga as the database has it after this settle. */
export function settledSaga(
  saga: LeasedSaga,
  { state, failedRounds = 0, runsAlone = false }: SagaSettle,
): LeasedSaga {
  return { ...saga, state, failedRounds, runsAlone, wasLost: false };
}

function openAttempt(saga: LeasedSaga, { call, opening }: Extract<Next, { do: 'call' }>) {
  const { state, events } = opening;
  const made = makeRequest({ ...saga, state }, call);
  const row: AddedAttempt = { ...opening.attempt, request: made.ok ? made.request : null };
  return { state, events, row };
}

/** A saga that backs off still wakes at its deadline. */
function wakeAtOf({ state, next }: Settlement, context: SettleContext): number | null {
  if (next.do !== 'call' && next.do !== 'poll') return state.wakeAt;
  const { continuation, now, random, backoffMs } = context;
  if (continuation === 'waits') return null;
  if (continuation === 'released') return now;
  const until = now + backoffMs(next.call.service) * (0.75 + random() / 2);
  return state.deadlineAt !== null && state.deadlineAt > now ? Math.min(until, state.deadlineAt) : until;
}

/** An answer resets the failed rounds, and so does needing attention. */
function failedRoundsAfter(
  saga: LeasedSaga,
  event: EngineEvent,
  state: SagaState,
): Pick<SagaSettle, 'failedRounds' | 'runsAlone'> {
  const { kind } = event;
  if (kind === 'answered' || kind === 'given_up' || state.stuck !== null)
    return { failedRounds: 0, runsAlone: false };
  return { failedRounds: saga.failedRounds, runsAlone: saga.runsAlone || mustRunAlone(saga, event, state) };
}

/** The last attempt after a lost worker must not run beside other sagas: it is left to a claim that runs it alone. */
export function mustRunAlone(
  { workflow, runsAlone }: LeasedSaga,
  { kind }: EngineEvent,
  state: SagaState,
): boolean {
  return kind === 'worker_lost' && !runsAlone && hasOneAttemptLeft(workflow, state);
}

export function firstEvent({ wasLost, failedRounds }: LeasedSaga): EngineEvent {
  if (failedRounds < MAX_FAILED_ROUNDS) return { kind: wasLost ? 'worker_lost' : 'claimed' };
  const reason = `${failedRounds} rounds in a row failed: its worker was lost or could not process it`;
  return { kind: 'given_up', reason };
}

const notStored = 'the answer could not be stored: ';

/** An answer that the database rejects counts as unknown. If that is rejected too, the answer is not the cause. */
export function withoutAnswer(event: EngineEvent, reason: string): EngineEvent {
  const isSecond =
    event.kind === 'answered' &&
    event.answer.class === 'unknown' &&
    event.answer.detail.startsWith(notStored);
  if (event.kind !== 'answered' || isSecond) throw new Error(`the saga cannot be stored: ${reason}`);
  const failure: Failure = {
    class: 'unknown',
    detail: `${notStored}${reason}`,
    isTimeout: false,
    isUnsent: false,
  };
  return { ...event, answer: failure };
}
