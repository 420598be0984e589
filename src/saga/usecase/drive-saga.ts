import {
  decide,
  type Call,
  type Circumstances,
  type EngineEvent,
  type Settlement,
} from '../domain/decide.ts';
import { judgeMappingError, type Answer, type Failure } from '../domain/judge-answer.ts';
import { withKnown } from '../domain/saga-state.ts';
import type { CallSlots, Slot } from './call-slots.ts';
import { makeRequest } from './make-request.ts';
import type { AddedAttempt, HeldSaga, SagaSettle, SendCall, SettleResult } from './ports.ts';
import type { SettleQueue } from './settle-queue.ts';

export type DriveDeps = Readonly<{
  queue: SettleQueue;
  slots: CallSlots;
  send: SendCall;
  serviceOf: Circumstances['serviceOf'];
  /** On the database's clock, as far as this process knows it. */
  now: () => number;
  random: () => number;
  /** By the monotonic clock, with every renewal. */
  isLeaseAlive: (saga: Pick<HeldSaga, 'id' | 'lease'>) => boolean;
  /** A process that stops opens nothing more. */
  isStopping: () => boolean;
  /** The saga as it stood, and what was written. */
  onSettled: (saga: HeldSaga, written: SagaSettle) => void;
}>;

const noSlotPauseMs = 1000;

/**
 * Takes one claimed saga as far as it goes: decides, writes it down, calls, and so on with the answer, until it waits
 * for a time or a person, has ended, or is no longer ours. A call is sent only after its open row is known to be
 * stored, and while the lease lives.
 */
export async function driveSaga(deps: DriveDeps, claimed: HeldSaga): Promise<void> {
  let saga = claimed;
  let event: EngineEvent = { kind: claimed.wasLost ? 'worker_lost' : 'claimed' };
  for (;;) {
    const moved: Moved | null = await move(deps, saga, event);
    if (moved === null) return;
    saga = moved.saga;
    const { call, slot } = moved;
    try {
      // A poll stores nothing before it is sent, so it may also be left to somebody else.
      if (!deps.isLeaseAlive(saga)) return;
      event = { kind: 'answered', ...call, answer: await callOut(deps, saga, call) };
    } finally {
      slot.release();
    }
  }
}

type Moved = Readonly<{ saga: HeldSaga; call: Call; slot: Slot }>;

/** Settles what follows from an event; a call that is to be sent now, or null where the saga is let go. */
async function move(deps: DriveDeps, held: HeldSaga, seen: EngineEvent): Promise<Moved | null> {
  let saga = held;
  let event = seen;
  let slot: Slot | null = null;
  try {
    for (;;) {
      const decision = decide(saga.workflow, saga.state, event, { ...deps, now: deps.now() });
      if (decision.outcome === 'stale') return null;
      const { next } = decision;
      const wanted = next.do === 'call' || next.do === 'poll' ? next.call.service : null;
      if (wanted !== null && slot?.service !== wanted) {
        slot?.release();
        slot = deps.slots.takeNow(wanted);
        // What is known already does not wait for a slot: it is written down first.
        if (slot === null && event.kind !== 'answered' && !deps.isStopping()) {
          slot = await deps.slots.take(wanted);
          // Time has passed: what was decided is decided again.
          if (slot !== null) continue;
        }
      }
      if (next.do === 'poll' && slot !== null && !deps.isStopping()) {
        const moved = { saga: { ...saga, state: decision.state }, call: next.call, slot };
        slot = null;
        return moved;
      }
      const opens = next.do === 'call' && slot !== null && !deps.isStopping();
      const waits = next.do === 'call' && slot === null && event.kind === 'answered' && !deps.isStopping();
      const written = settleOf(deps, saga, decision, opens ? 'opens' : waits ? 'waits' : 'leaves');
      const result = await deps.queue.settle(written);
      if (result.outcome === 'settled') {
        deps.onSettled(saga, written);
        if (waits) {
          saga = { ...saga, state: written.state };
          event = { kind: 'claimed' };
          continue;
        }
        if (next.do !== 'call' || slot === null || !opens) return null;
        const moved = { saga: { ...saga, state: next.opening.state }, call: next.call, slot };
        slot = null;
        return moved;
      }
      if (result.outcome === 'stale') return null;
      if (result.outcome === 'outdated') saga = { ...saga, state: withKnown(saga.state, result.known) };
      else event = withoutAnswer(event, result);
    }
  } finally {
    slot?.release();
  }
}

function settleOf(
  deps: Pick<DriveDeps, 'now' | 'random'>,
  saga: HeldSaga,
  { state, changed, added, events, next }: Settlement,
  how: 'opens' | 'waits' | 'leaves',
): SagaSettle {
  const known = { abort: saga.state.abort, isDeadlineOver: saga.state.isDeadlineOver };
  const opens = how === 'opens';
  const begun = state.status !== 'STARTED' || (next.do === 'call' && opens);
  const first = saga.state.status === 'STARTED' && begun ? (['SAGA_STARTED'] as const) : [];
  if (next.do === 'call' && opens) {
    const { opening, call } = next;
    const made = makeRequest({ ...saga, state: opening.state }, call);
    const opened: AddedAttempt = { ...opening.attempt, request: made.ok ? made.request : null };
    return {
      saga,
      known,
      state: opening.state,
      changed,
      added: [...added, opened],
      events: [...first, ...events, ...opening.events],
      keepsLease: true,
    };
  }
  if (how === 'waits')
    return {
      saga,
      known,
      state: { ...state, wakeAt: null },
      changed,
      added,
      events: [...first, ...events],
      keepsLease: true,
    };
  // Nobody has a slot for it here: it comes back a little later, at no cost.
  const isSentAway = next.do === 'call' || next.do === 'poll';
  const wakeAt = isSentAway ? deps.now() + noSlotPauseMs * (1 + deps.random()) : state.wakeAt;
  return {
    saga,
    known,
    state: { ...state, wakeAt },
    changed,
    added,
    events: [...first, ...events],
    keepsLease: false,
  };
}

async function callOut(deps: DriveDeps, saga: HeldSaga, call: Call): Promise<Answer> {
  const made = makeRequest(saga, call);
  if (!made.ok) return judgeMappingError(made.defect);
  const stepName = saga.workflow.steps[call.step]?.name ?? '';
  const mayBegin = (): boolean => deps.isLeaseAlive(saga);
  return deps.send({ saga, call, stepName, epoch: saga.lease.epoch, mayBegin, ...made });
}

/** What the database cannot keep is as good as no answer. */
function withoutAnswer(
  event: EngineEvent,
  { reason }: Extract<SettleResult, { outcome: 'unstorable' }>,
): EngineEvent {
  if (event.kind !== 'answered') throw new Error(`a saga cannot be stored: ${reason}`);
  const detail = `the answer could not be stored: ${reason}`;
  const failure: Failure = { class: 'unknown', detail, isTimeout: false, isUnsent: false };
  return { ...event, answer: failure };
}
