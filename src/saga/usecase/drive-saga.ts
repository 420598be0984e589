import { messageOf } from '../../kernel/errors.ts';
import {
  decide,
  type Call,
  type Circumstances,
  type EngineEvent,
  type Next,
  type Settlement,
} from '../domain/decide.ts';
import { judgeMappingError, type Answer, type Failure } from '../domain/judge-answer.ts';
import { withKnown } from '../domain/saga-state.ts';
import { hasOneAttemptLeft, MOST_SETBACKS } from '../domain/setbacks.ts';
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
  /**
   * Whether a call may follow here. A process that stops opens nothing more, and what makes room for others leaves its
   * next call to whoever claims it.
   */
  mayGoOn: (saga: HeldSaga, after: EngineEvent['kind']) => boolean;
  /** The saga as it stood, and what was written. */
  onSettled: (saga: HeldSaga, written: SagaSettle) => void;
  /** Lets it go as a setback: it comes back after a while. */
  setBack: (saga: HeldSaga) => Promise<void>;
  onError: (what: string, error: unknown) => void;
}>;

/** A saga under way: as the database has it, what was seen last, and the slot that it has. */
type Drive = { saga: HeldSaga; event: EngineEvent; slot: Slot | null };

/**
 * Takes one claimed saga as far as it goes: decides, writes it down, calls, and so on with the answer, until it waits
 * for a time or a person, has ended, or is no longer ours. A call is sent only after its open row is known to be
 * stored, and while the lease lives. A saga that cannot be dealt with comes back a few times, later and later; then a
 * person is told why.
 */
export async function driveSaga(deps: DriveDeps, claimed: HeldSaga): Promise<void> {
  const drive: Drive = { saga: claimed, event: firstEvent(claimed), slot: null };
  try {
    await goOn(deps, drive);
  } catch (error) {
    deps.onError(`saga ${drive.saga.id}`, error);
    await giveUp(deps, drive, error);
  } finally {
    leaveSlot(drive);
  }
}

function firstEvent({ wasLost, setbacks }: HeldSaga): EngineEvent {
  if (setbacks < MOST_SETBACKS) return { kind: wasLost ? 'worker_lost' : 'claimed' };
  const reason = `${setbacks} times in a row its process was lost with it or could not deal with it`;
  return { kind: 'given_up', reason };
}

async function giveUp(deps: DriveDeps, drive: Drive, error: unknown): Promise<void> {
  const isLast = drive.saga.setbacks + 1 === MOST_SETBACKS;
  if (!isLast) return deps.setBack(drive.saga);
  drive.event = { kind: 'given_up', reason: `it cannot be dealt with: ${messageOf(error)}` };
  await goOn(deps, drive).catch(async (again: unknown) => {
    deps.onError(`saga ${drive.saga.id}, which a person is to be asked about,`, again);
    await deps.setBack(drive.saga);
  });
}

async function goOn(deps: DriveDeps, drive: Drive): Promise<void> {
  for (;;) {
    const call = await move(deps, drive);
    // A poll stores nothing before it is sent, so it may also be left to somebody else.
    if (call === null || !deps.isLeaseAlive(drive.saga)) return;
    const answer = await callOut(deps, drive.saga, call);
    drive.event = { kind: 'answered', ...call, answer };
    if (answer.class === 'done')
      drive.saga = { ...drive.saga, bytes: drive.saga.bytes + sizeOf(answer.output) };
  }
}

function sizeOf(output: unknown): number {
  return JSON.stringify(output)?.length ?? 0;
}

/** Settles what follows from an event; a call that is to be sent now, or null where the saga is let go. */
async function move(deps: DriveDeps, drive: Drive): Promise<Call | null> {
  for (;;) {
    const { saga, event } = drive;
    const decision = decide(saga.workflow, saga.state, event, { ...deps, now: deps.now() });
    if (decision.outcome === 'stale') return null;
    const { next } = decision;
    const wanted = next.do === 'call' || next.do === 'poll' ? next.call.service : null;
    const mayGoOn = (): boolean =>
      wanted !== null && deps.mayGoOn(saga, event.kind) && !isNewDanger(saga, event, decision.state);
    if (wanted === null || !mayGoOn()) leaveSlot(drive);
    // Time has passed: what was decided is decided again.
    else if (await hasWaitedFor(deps, drive, wanted)) continue;
    const goesOn = mayGoOn();
    const hasSlot = goesOn && drive.slot?.service === wanted;
    if (next.do === 'poll' && hasSlot) {
      drive.saga = { ...saga, state: decision.state };
      return next.call;
    }
    const how = hasSlot ? 'opens' : goesOn ? withoutSlot(event) : 'leaves';
    const written = settleOf(deps, drive, decision, how);
    const result = await deps.queue.settle(written, saga.bytes);
    switch (result.outcome) {
      case 'settled':
        drive.saga = afterSettle(saga, written);
        deps.onSettled(saga, written);
        if (how !== 'waits') return next.do === 'call' && how === 'opens' ? next.call : null;
        drive.event = { kind: 'claimed' };
        break;
      case 'stale':
        return null;
      case 'unclear':
        // It counts as a lost lease, which runs out.
        deps.onError(`settling saga ${saga.id}`, result.error);
        return null;
      case 'outdated':
        drive.saga = { ...saga, state: withKnown(saga.state, result.known) };
        break;
      case 'unstorable':
        drive.event = withoutAnswer(event, result);
    }
  }
}

/** Whether it has a slot now that it had to wait for. */
async function hasWaitedFor({ slots }: DriveDeps, drive: Drive, service: string): Promise<boolean> {
  const isAnswered = drive.event.kind === 'answered';
  // One that a call was made with is another one for the next call, also to the same service.
  if (drive.slot?.service === service && !isAnswered) return false;
  drive.slot = drive.slot === null ? slots.takeNow(service) : drive.slot.swapFor(service);
  // What is known already does not wait for a slot: it is written down first.
  if (drive.slot !== null || isAnswered) return false;
  drive.slot = await slots.take(service);
  return drive.slot !== null;
}

function leaveSlot(drive: Drive): void {
  drive.slot?.release();
  drive.slot = null;
}

/**
 * `opens`: the call follows. `waits`: for a slot, and keeps its lease. `is sent away`: there is no slot for it here for
 * some time. `leaves`: it does not go on here, and may at once elsewhere.
 */
type How = 'opens' | 'waits' | 'is sent away' | 'leaves';

/** An answer was written down without a slot for what follows: it waits for one now. Whoever has waited is sent away. */
function withoutSlot({ kind }: EngineEvent): How {
  return kind === 'answered' ? 'waits' : 'is sent away';
}

function settleOf(deps: DriveDeps, { saga, event }: Drive, decided: Settlement, how: How): SagaSettle {
  const { state, changed, added, events, next } = decided;
  const opened = next.do === 'call' && how === 'opens' ? openedBy(saga, next) : null;
  const hasBegun = saga.state.status === 'STARTED' && (state.status !== 'STARTED' || opened !== null);
  return {
    saga,
    known: { abort: saga.state.abort, isDeadlineOver: saga.state.isDeadlineOver },
    state: opened?.state ?? { ...state, wakeAt: wakeOf(deps, decided, how) },
    changed,
    added: opened === null ? added : [...added, opened.row],
    events: [...(hasBegun ? (['SAGA_STARTED'] as const) : []), ...events, ...(opened?.events ?? [])],
    keepsLease: opened !== null || how === 'waits',
    ...setbacksAfter(saga, event, state),
  };
}

function openedBy(saga: HeldSaga, { call, opening }: Extract<Next, { do: 'call' }>) {
  const { state, events } = opening;
  const made = makeRequest({ ...saga, state }, call);
  const row: AddedAttempt = { ...opening.attempt, request: made.ok ? made.request : null };
  return { state, events, row };
}

/** When it is due again: what stays away for a while still wakes at its deadline. */
function wakeOf({ now, random, slots }: DriveDeps, { state, next }: Settlement, how: How): number | null {
  if (next.do !== 'call' && next.do !== 'poll') return state.wakeAt;
  if (how === 'waits') return null;
  if (how === 'leaves') return now();
  const until = now() + slots.pauseMs(next.call.service) * (0.75 + random() / 2);
  return state.deadlineAt !== null && state.deadlineAt > now() ? Math.min(until, state.deadlineAt) : until;
}

/** An answer ends the row of setbacks; and so does asking a person. */
function setbacksAfter(
  saga: HeldSaga,
  event: EngineEvent,
  state: Settlement['state'],
): Pick<SagaSettle, 'setbacks' | 'runsAlone'> {
  const { kind } = event;
  if (kind === 'answered' || kind === 'given_up' || state.stuck !== null)
    return { setbacks: 0, runsAlone: false };
  return { setbacks: saga.setbacks, runsAlone: saga.runsAlone || isNewDanger(saga, event, state) };
}

/** Its last attempt is not opened in company: it leaves, and the next claim runs it alone. */
function isNewDanger(
  { workflow, runsAlone }: HeldSaga,
  { kind }: EngineEvent,
  state: Settlement['state'],
): boolean {
  return kind === 'worker_lost' && !runsAlone && hasOneAttemptLeft(workflow, state);
}

function afterSettle(saga: HeldSaga, { state, setbacks = 0, runsAlone = false }: SagaSettle): HeldSaga {
  return { ...saga, state, setbacks, runsAlone, wasLost: false };
}

async function callOut(deps: DriveDeps, saga: HeldSaga, call: Call): Promise<Answer> {
  const made = makeRequest(saga, call);
  if (!made.ok) return judgeMappingError(made.defect);
  const stepName = saga.workflow.steps[call.step]?.name ?? '';
  const mayBegin = (): boolean => deps.isLeaseAlive(saga);
  return deps.send({ saga, call, stepName, epoch: saga.lease.epoch, mayBegin, ...made });
}

const notStored = 'the answer could not be stored: ';

/** What the database cannot keep is as good as no answer; where it cannot keep that either, it is not the answer. */
function withoutAnswer(
  event: EngineEvent,
  { reason }: Extract<SettleResult, { outcome: 'unstorable' }>,
): EngineEvent {
  const isAgain =
    event.kind === 'answered' &&
    event.answer.class === 'unknown' &&
    event.answer.detail.startsWith(notStored);
  if (event.kind !== 'answered' || isAgain) throw new Error(`a saga cannot be stored: ${reason}`);
  const failure: Failure = {
    class: 'unknown',
    detail: `${notStored}${reason}`,
    isTimeout: false,
    isUnsent: false,
  };
  return { ...event, answer: failure };
}
