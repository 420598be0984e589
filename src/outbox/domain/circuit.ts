import { cleanText } from '../../kernel/text.ts';
import { errorText, type ErrorCode, type SendOutcome } from './order.ts';

/**
 * Whether a destination answers at all. Each process watches the ends of its own attempts; when they show an outage
 * it opens the circuit, which all processes share. While it is open nothing is sent but probes.
 *
 *   closed --an outage seen by any process-->      open, the first probe after the initial interval
 *   open   --due, one process takes the probe-->   open, and not due again before that probe has had its time
 *   open   --the probe was answered-->             closed
 *   open   --the probe failed-->                   open, twice the interval up to the longest
 *   open   --the probe was not sent after all-->   open, the same interval again
 *
 * Any answer that is about the order and not about the destination's health is contact: that it was done, that it
 * is refused for what it says, that it should come later. All times are the database's, in milliseconds.
 */
export type Circuit = Readonly<{
  openedAtMs: number;
  reason: string;
  intervalMs: number;
  nextProbeAtMs: number;
  /** The order that was last sent as a probe: another one is taken next, if there is one. */
  lastProbeId: bigint | null;
}>;

export type CircuitTiming = Readonly<{
  initialMs: number;
  maxMs: number;
  /** As long as a probe can take: nobody else takes one meanwhile, unless the process that has it is lost. */
  leaseMs: number;
}>;

/** What the end of an attempt says about the destination. */
type Verdict =
  | Readonly<{ says: 'nothing' | 'contact' }>
  | Readonly<{ says: 'failure'; isUnauthorized: boolean; error: string }>;

const outageCodes: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'NETWORK_TIMEOUT',
  'BROKER_5XX',
  'UNAUTHORIZED',
  'UNKNOWN',
]);

function verdictOf(outcome: SendOutcome): Verdict {
  switch (outcome.end) {
    case 'released':
      return outcome.isOutage === true
        ? { says: 'failure', isUnauthorized: false, error: errorText('NETWORK_TIMEOUT', outcome.reason) }
        : { says: 'nothing' };
    case 'sent':
    case 'limited':
      return { says: 'contact' };
    case 'refused':
    case 'failed':
    case 'unknown': {
      const { code, detail } = outcome;
      if (!outageCodes.has(code)) return { says: 'contact' };
      return { says: 'failure', isUnauthorized: code === 'UNAUTHORIZED', error: errorText(code, detail) };
    }
  }
}

/**
 * The failures in a row that one process has seen. An order is in it once however often it failed: one that fails
 * everywhere is no outage.
 */
export type Streak = Readonly<{
  failures: number;
  /** Different orders of them, as many as are needed to tell. */
  orderIds: readonly bigint[];
  /** Those at the end that were all 401 or 403. */
  unauthorizedIds: readonly bigint[];
  lastError: string;
}>;

export const noStreak: Streak = { failures: 0, orderIds: [], unauthorizedIds: [], lastError: '' };

const failuresToOpen = 5;
const ordersToOpen = 3;
const unauthorizedToOpen = 3;
const reasonMaxBytes = 500;

export function extendStreak(streak: Streak, orderId: bigint, outcome: SendOutcome): Streak {
  const verdict = verdictOf(outcome);
  switch (verdict.says) {
    case 'nothing':
      return streak;
    case 'contact':
      return noStreak;
    case 'failure':
      return {
        failures: streak.failures + 1,
        orderIds: withId(streak.orderIds, orderId, ordersToOpen),
        unauthorizedIds: verdict.isUnauthorized
          ? withId(streak.unauthorizedIds, orderId, unauthorizedToOpen)
          : [],
        lastError: verdict.error,
      };
  }
}

function withId(ids: readonly bigint[], id: bigint, enough: number): readonly bigint[] {
  return ids.length >= enough || ids.includes(id) ? ids : [...ids, id];
}

/** Why the circuit has to open; null where the streak shows no outage. */
export function outageOf(streak: Streak): string | null {
  const isUnauthorized = streak.unauthorizedIds.length >= unauthorizedToOpen;
  const isOutage = streak.failures >= failuresToOpen && streak.orderIds.length >= ordersToOpen;
  if (!isUnauthorized && !isOutage) return null;
  // From outside, and stored: what PostgreSQL would not take must not keep the circuit closed.
  return cleanText(streak.lastError, reasonMaxBytes);
}

/** Opens the circuit; one that is open stays as it is. */
export function openCircuit(
  circuit: Circuit | null,
  reason: string,
  nowMs: number,
  timing: CircuitTiming,
): Circuit {
  return (
    circuit ?? {
      openedAtMs: nowMs,
      reason,
      intervalMs: timing.initialMs,
      nextProbeAtMs: nowMs + timing.initialMs,
      lastProbeId: null,
    }
  );
}

export function isProbeDue(circuit: Circuit | null, nowMs: number): circuit is Circuit {
  return circuit !== null && nowMs >= circuit.nextProbeAtMs;
}

/** Takes the probe that is due: moving the next one away is the lease on this one. */
export function takeProbe(circuit: Circuit, nowMs: number, timing: CircuitTiming): Circuit {
  return { ...circuit, nextProbeAtMs: nowMs + Math.max(circuit.intervalMs, timing.leaseMs) };
}

/** What the end of a probe does to the circuit: null closes it. Without an order or an outcome nothing was sent. */
export function settleProbe(
  circuit: Circuit,
  probe: Readonly<{ orderId: bigint | null; outcome: SendOutcome | null }>,
  nowMs: number,
  timing: CircuitTiming,
): Circuit | null {
  const says = probe.outcome === null ? 'nothing' : verdictOf(probe.outcome).says;
  if (says === 'contact') return null;
  const intervalMs = says === 'nothing' ? circuit.intervalMs : Math.min(circuit.intervalMs * 2, timing.maxMs);
  const lastProbeId = probe.orderId ?? circuit.lastProbeId;
  return { ...circuit, intervalMs, nextProbeAtMs: nowMs + intervalMs, lastProbeId };
}
