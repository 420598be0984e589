import * as circuits from '../../kernel/targets/circuit.ts';
import { cleanText } from '../../kernel/text.ts';
import { errorText, type ErrorCode, type SendOutcome } from './order.ts';

/**
 * The circuit of a destination (see kernel/targets/circuit.ts). Each process counts the failures in a row of its own attempts;
 * when they show an outage it opens the circuit for all. Any answer that is about the order and not about the
 * destination's health is contact: done, rejected for its content, or rate-limited.
 */
export type Circuit = circuits.Probing &
  Readonly<{
    openedAtMs: number;
    reason: string;
    /** The order that was last sent as a probe: the next probe is another one, if there is one. */
    lastProbeId: bigint | null;
  }>;

export type CircuitTiming = circuits.ProbeTiming &
  Readonly<{
    /** How long a probe can take at most. */
    leaseMs: number;
  }>;

/** Throttle and circuit of a destination, for display. */
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

/** What the outcome of an attempt says about the destination. */
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

/** The failures in a row that one process has seen. */
export type Streak = Readonly<{
  all: circuits.Streak<bigint>;
  /** Those at the end that were all 401 or 403. */
  unauthorized: circuits.Streak<bigint>;
  lastError: string;
}>;

export const noStreak: Streak = {
  all: circuits.noStreak,
  unauthorized: circuits.noStreak,
  lastError: '',
};

const outage: readonly circuits.OutageRule[] = [{ failures: 5, items: 3 }];
const unauthorizedOutage: readonly circuits.OutageRule[] = [{ failures: 3, items: 3 }];
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
        all: circuits.extendStreak(streak.all, orderId),
        unauthorized: verdict.isUnauthorized
          ? circuits.extendStreak(streak.unauthorized, orderId)
          : circuits.noStreak,
        lastError: verdict.error,
      };
  }
}

/** Why the circuit has to open; null where the streak shows no outage. */
export function outageOf({ all, unauthorized, lastError }: Streak): string | null {
  const isDown = circuits.isOutage(all, outage) || circuits.isOutage(unauthorized, unauthorizedOutage);
  // The text is from outside and is stored: text that PostgreSQL rejects must not keep the circuit closed.
  return isDown ? cleanText(lastError, reasonMaxBytes) : null;
}

/** Opens the circuit; an open one stays as it is. */
export function openCircuit(
  circuit: Circuit | null,
  reason: string,
  nowMs: number,
  timing: CircuitTiming,
): Circuit {
  return circuit ?? { openedAtMs: nowMs, reason, lastProbeId: null, ...circuits.startProbing(timing, nowMs) };
}

export function isProbeDue(circuit: Circuit | null, nowMs: number): circuit is Circuit {
  return circuit !== null && circuits.isProbeDue(circuit, nowMs);
}

export function takeProbe(circuit: Circuit, nowMs: number, { leaseMs }: CircuitTiming): Circuit {
  return circuits.takeProbe(circuit, nowMs, leaseMs);
}

/** The circuit after a probe; null closes it. Without an order or an outcome nothing was sent. */
export function settleProbe(
  circuit: Circuit,
  probe: Readonly<{ orderId: bigint | null; outcome: SendOutcome | null }>,
  nowMs: number,
  timing: CircuitTiming,
): Circuit | null {
  const says = probe.outcome === null ? 'nothing' : verdictOf(probe.outcome).says;
  if (says === 'contact') return null;
  const probed = { ...circuit, lastProbeId: probe.orderId ?? circuit.lastProbeId };
  return says === 'nothing' ? circuits.returnProbe(probed, nowMs) : circuits.failProbe(probed, nowMs, timing);
}
