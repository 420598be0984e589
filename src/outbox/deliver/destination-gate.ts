import type { Clock } from '../../kernel/clock.ts';
import {
  isProbeDue,
  settleProbe,
  takeProbe,
  type CircuitTiming,
  type GateSnapshot,
} from '../domain/circuit.ts';
import type { SendOutcome } from '../domain/order.ts';
import { blockedForMs, rateAt } from '../../kernel/targets/throttle.ts';
import {
  createSharedState,
  type DestinationState,
  type DestinationStateStore,
  type SharedState,
  type StateReading,
} from './shared-state.ts';
import { createFailureReporter } from './failure-reporter.ts';
import { createThrottleTokens, type ThrottleTokens } from './throttle-tokens.ts';

/**
 * One process's gate to one destination: whether orders to it may be claimed now, and how many. All processes share
 * the throttle and the circuit, which are decided in the database by its clock; the gate keeps what it last read and
 * answers from that at once. It writes only when the destination throttles or fails, and always in the background: a
 * slow or unavailable database never slows a send.
 */
export type DestinationGate = Readonly<{
  destination: string;
  /** How many orders may be claimed now. The tokens of the permit are spent unless they are given back. */
  mayClaim(wanted?: number): Permit;
  giveBack(permit: Permit, unused: number): void;
  /** Orders were handed to the sender. A first 429 halves the rate that is measured by this. */
  started(count: number): void;
  /** The outcome of an attempt that is no probe. */
  report(orderId: bigint, outcome: SendOutcome): void;
  isOpen(): boolean;
  /** Something that the database must learn is not written yet. */
  hasUnwritten(): boolean;
  /** The right to send one order while the circuit is open; null if no probe is due or another process has it. */
  takeProbe(): Promise<Probe | null>;
  /** Without an order there was none to send. Without an outcome it was not sent. */
  reportProbe(orderId: bigint | null, outcome: SendOutcome | null): Promise<void>;
  refresh(): Promise<void>;
  /** Takes over a reading of the shared state. */
  learn(reading: StateReading, askedAtMs: number): void;
  snapshot(): GateSnapshot;
  /** Resolves when nothing runs in the background; call it before closing the database. */
  flush(): Promise<void>;
}>;

export type Permit = Readonly<{
  /** Infinity if neither a throttle nor `wanted` limits it. */
  limit: number;
  /** If the limit is 0: when to ask again, unless `onChange` is called earlier. */
  waitMs: number;
  /** The throttle window of its tokens; null without tokens. */
  windowAtMs: number | null;
}>;

/** The order that the last probe sent: this one sends another, if there is one. */
export type Probe = Readonly<{ lastProbeId: bigint | null }>;

export type DestinationGateDeps = Readonly<{
  store: DestinationStateStore;
  clock: Clock;
  /** How often an open circuit is probed, and how long a probe may take. */
  timing: CircuitTiming;
  /** Processes that send, this one included. */
  replicas: () => number;
  /** The gate may answer differently now. */
  onChange: () => void;
  onError: (error: unknown) => void;
}>;

/** When to ask again while something runs in the background. */
const backgroundWaitMs = 20;

/** Reads the state of all destinations of this process in one statement. */
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
  const shared = createSharedState({ ...deps, onTurn: () => reporter.resetStreak() }, destination);
  const tokens = createThrottleTokens({ shared, clock, replicas, onTaken: onChange });
  const reporter = createFailureReporter({ shared, clock, timing, replicas });
  const firstRead = shared.inBackground(() => refreshGates(deps, [gate]));
  const waitForBackground = (): Permit => nothing(Math.max(backgroundWaitMs, shared.pausedMs()));

  const gate: DestinationGate = {
    destination,
    mayClaim: (wanted = Infinity) => {
      if (!shared.isKnown()) {
        firstRead.begin();
        return waitForBackground();
      }
      if (reporter.hasUnwritten()) return waitForBackground();
      const { throttle, circuit } = shared.state();
      if (circuit !== null)
        return nothing(Math.max(circuit.nextProbeAtMs - shared.nowMs(), shared.pausedMs()));
      if (throttle === null) return { limit: wanted, waitMs: 0, windowAtMs: null };
      const blockedMs = blockedForMs(throttle, shared.nowMs());
      return blockedMs > 0 ? nothing(blockedMs) : (spend(tokens, wanted) ?? waitForBackground());
    },
    giveBack: ({ windowAtMs }, unused) => tokens.giveBack(windowAtMs, unused),
    started: reporter.countStarted,
    report: (orderId, outcome) => {
      reporter.reportRate(outcome);
      reporter.reportOutcome(orderId, outcome);
    },
    isOpen: () => shared.state().circuit !== null || reporter.seesOutage(),
    hasUnwritten: reporter.hasUnwritten,
    takeProbe: () => takeDueProbe(shared, timing),
    reportProbe: async (orderId, outcome) => {
      if (outcome !== null) reporter.reportRate(outcome);
      await shared.change(({ throttle, circuit }, nowMs) => {
        const next = circuit && settleProbe(circuit, { orderId, outcome }, nowMs, timing);
        return { state: { throttle, circuit: next }, result: null };
      });
    },
    refresh: async () => refreshGates(deps, [gate]).catch(shared.pause),
    learn: (reading, askedAtMs) => {
      shared.learn(reading, askedAtMs);
      reporter.write();
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
function spend(tokens: ThrottleTokens, wanted: number): Permit | undefined {
  const spending = tokens.spend(wanted);
  if ('windowAtMs' in spending) return { limit: spending.tokens, waitMs: 0, windowAtMs: spending.windowAtMs };
  return spending.nextInMs === 'taking' ? undefined : nothing(spending.nextInMs);
}

async function takeDueProbe(shared: SharedState, timing: CircuitTiming): Promise<Probe | null> {
  // Decided from the last reading where that is enough, without asking the database.
  const { throttle: limits, circuit: known } = shared.state();
  const isBlocked = blockedForMs(limits, shared.nowMs()) > 0;
  if (isBlocked || !isProbeDue(known, shared.nowMs()) || shared.pausedMs() > 0) return null;
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
    holdUntil: blockedForMs(throttle, nowMs) > 0 ? dateOf(throttle?.holdUntilMs) : null,
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
