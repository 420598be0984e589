import type { Clock } from '../../kernel/clock.ts';
import { isProbeDue, settleProbe, takeProbe, type CircuitTiming } from '../domain/circuit.ts';
import type { SendOutcome } from '../domain/order.ts';
import { heldForMs, rateAt } from '../../kernel/throttle.ts';
import {
  createSharedState,
  type DestinationState,
  type DestinationStateStore,
  type SharedState,
  type StateReading,
} from './shared-state.ts';
import { createTokenPurse, type TokenPurse } from './token-purse.ts';
import { createTroubleWatch } from './trouble-watch.ts';

/**
 * One process's door to one destination: whether orders of it may be claimed now, and how many. The throttle and
 * the circuit behind it are shared by all processes and decided in the database, by its clock; the gate keeps what
 * it last read and answers from that at once. It writes only when the destination is in trouble, always in the
 * background: a database that is slow or away never slows a send.
 */
export type DestinationGate = Readonly<{
  destination: string;
  /** How many may be claimed now. The permit's tokens are spent, unless they are given back. */
  mayClaim(wanted?: number): Permit;
  giveBack(permit: Permit, unused: number): void;
  /** So many orders are handed to the sender now: a first 429 halves the rate that this shows. */
  started(count: number): void;
  /** Every attempt that has ended, except probes. */
  report(orderId: bigint, outcome: SendOutcome): void;
  isOpen(): boolean;
  /** The right to send one order though the circuit is open; null where none is due, or another process has it. */
  takeProbe(): Promise<Probe | null>;
  /** No order: none was there to send. No outcome: it was not sent after all. */
  reportProbe(orderId: bigint | null, outcome: SendOutcome | null): Promise<void>;
  refresh(): Promise<void>;
  /** What was read about it together with other destinations. */
  learn(reading: StateReading, askedAtMs: number): void;
  snapshot(): GateSnapshot;
  /** Resolves when nothing runs in the background any more: before the database goes. */
  flush(): Promise<void>;
}>;

export type Permit = Readonly<{
  /** Infinity where neither a throttle nor `wanted` limits it. */
  limit: number;
  /** Where the limit is 0: when it is worth asking again, unless `onChange` says so earlier. */
  waitMs: number;
  /** The window that its tokens are of; null where there are none. */
  windowAtMs: number | null;
}>;

/** The order that the last probe sent: another one is sent now, if there is one. */
export type Probe = Readonly<{ lastProbeId: bigint | null }>;

export type GateSnapshot = Readonly<{
  /** Orders per second over all processes; null where nothing limits them. */
  rate: number | null;
  peak: number | null;
  holdUntil: Date | null;
  circuit: Readonly<{
    state: 'closed' | 'open';
    openedAt: Date | null;
    reason: string | null;
    nextProbeAt: Date | null;
  }>;
}>;

export type DestinationGateDeps = Readonly<{
  store: DestinationStateStore;
  clock: Clock;
  /** How often an open circuit is probed, and how long a probe may take. */
  timing: CircuitTiming;
  /** Processes that send, this one included. */
  replicas: () => number;
  /** The gate may answer otherwise now: whoever waits for it asks again. */
  onChange: () => void;
  onError: (error: unknown) => void;
}>;

/** What runs in the background is done in a moment. */
const momentMs = 20;

/** Reads about all of a process's destinations at once: the one statement that they cost while nothing is wrong. */
export async function refreshGates(
  { store, clock }: Pick<DestinationGateDeps, 'store' | 'clock'>,
  gates: readonly DestinationGate[],
): Promise<void> {
  const askedAtMs = clock.monotonicMs();
  const readings = await store.states(gates.map(({ destination }) => destination));
  for (const gate of gates) {
    const reading = readings.get(gate.destination);
    if (reading !== undefined) gate.learn(reading, askedAtMs);
  }
}

export function createDestinationGate(deps: DestinationGateDeps, destination: string): DestinationGate {
  const { clock, timing, replicas, onChange } = deps;
  const shared = createSharedState({ ...deps, onTurn: () => watch.forgetStreak() }, destination);
  const purse = createTokenPurse({ shared, clock, replicas, onTaken: onChange });
  const watch = createTroubleWatch({ shared, clock, timing, replicas });
  const firstLook = shared.inBackground(() => refreshGates(deps, [gate]));
  const inAMoment = (): Permit => nothing(Math.max(momentMs, shared.pausedMs()));

  const gate: DestinationGate = {
    destination,
    mayClaim: (wanted = Infinity) => {
      if (!shared.isKnown()) {
        firstLook.begin();
        return inAMoment();
      }
      if (watch.hasNews()) return inAMoment();
      const { throttle, circuit } = shared.state();
      if (circuit !== null)
        return nothing(Math.max(circuit.nextProbeAtMs - shared.nowMs(), shared.pausedMs()));
      if (throttle === null) return { limit: wanted, waitMs: 0, windowAtMs: null };
      const heldMs = heldForMs(throttle, shared.nowMs());
      return heldMs > 0 ? nothing(heldMs) : (spend(purse, wanted) ?? inAMoment());
    },
    giveBack: ({ windowAtMs }, unused) => purse.giveBack(windowAtMs, unused),
    started: watch.noteStart,
    report: (orderId, outcome) => {
      watch.noteEnd(outcome);
      watch.noteOrder(orderId, outcome);
    },
    isOpen: () => shared.state().circuit !== null || watch.seesOutage(),
    takeProbe: () => takeDueProbe(shared, timing),
    reportProbe: async (orderId, outcome) => {
      if (outcome !== null) watch.noteEnd(outcome);
      await shared.change(({ throttle, circuit }, nowMs) => {
        const next = circuit && settleProbe(circuit, { orderId, outcome }, nowMs, timing);
        return { state: { throttle, circuit: next }, result: null };
      });
    },
    refresh: async () => refreshGates(deps, [gate]).catch(shared.pause),
    learn: (reading, askedAtMs) => {
      shared.learn(reading, askedAtMs);
      watch.publish();
    },
    snapshot: () => snapshotOf(shared.state(), shared.nowMs()),
    flush: shared.flush,
  };
  return gate;
}

function nothing(waitMs: number): Permit {
  return { limit: 0, waitMs: Math.max(0, Math.ceil(waitMs)), windowAtMs: null };
}

/** Undefined while tokens are being taken. */
function spend(purse: TokenPurse, wanted: number): Permit | undefined {
  const spending = purse.spend(wanted);
  if ('windowAtMs' in spending) return { limit: spending.tokens, waitMs: 0, windowAtMs: spending.windowAtMs };
  return spending.nextInMs === 'taking' ? undefined : nothing(spending.nextInMs);
}

async function takeDueProbe(shared: SharedState, timing: CircuitTiming): Promise<Probe | null> {
  // Most of those who ask need not ask the database.
  const { throttle: limits, circuit: known } = shared.state();
  const isHeld = heldForMs(limits, shared.nowMs()) > 0;
  if (isHeld || !isProbeDue(known, shared.nowMs()) || shared.pausedMs() > 0) return null;
  const taken = await shared.change<Probe | null>((state, nowMs) => {
    const { throttle, circuit } = state;
    if (!isProbeDue(circuit, nowMs)) return { state, result: null };
    const { lastProbeId } = circuit;
    return { state: { throttle, circuit: takeProbe(circuit, nowMs, timing) }, result: { lastProbeId } };
  });
  return taken?.result ?? null;
}

function snapshotOf({ throttle, circuit }: DestinationState, nowMs: number): GateSnapshot {
  const rate = rateAt(throttle, nowMs);
  return {
    rate,
    peak: rate === null ? null : (throttle?.peak ?? null),
    holdUntil: heldForMs(throttle, nowMs) > 0 ? dateOf(throttle?.holdUntilMs) : null,
    circuit: {
      state: circuit === null ? 'closed' : 'open',
      openedAt: dateOf(circuit?.openedAtMs),
      reason: circuit?.reason ?? null,
      nextProbeAt: dateOf(circuit?.nextProbeAtMs),
    },
  };
}

function dateOf(atMs: number | null | undefined): Date | null {
  return atMs === null || atMs === undefined ? null : new Date(atMs);
}
