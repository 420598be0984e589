import * as circuits from '../../kernel/targets/circuit.ts';

/**
 * The circuit of a queue's push target (see kernel/targets/circuit.ts), stored in the row of the queue. Failures in a row are
 * counted over all processes, so the circuit exists from the first failure on: closed while `openedAtMs` is null, open
 * after that; null is a target without failures. A call that started after the circuit opened and was answered closes
 * it, as a probe does.
 *
 * While it is open only probes are sent, and no failure costs a job an attempt. One job that fails by itself is no
 * outage: its retries end it, as they should.
 */
export type PushCircuit = circuits.Streak<string> &
  circuits.Probing &
  Readonly<{
    /** No call of the streak has reached the target: none of the jobs can be the cause. */
    isUnreachable: boolean;
    openedAtMs: number | null;
    reason: string;
  }>;

export type OpenCircuit = PushCircuit & Readonly<{ openedAtMs: number }>;

/** A call that failed, presumably because the target is down. */
export type DownCall = Readonly<{ jobId: string; reason: string; isUnreachable: boolean; isProbe: boolean }>;

const timing: circuits.ProbeTiming = { initialMs: 1000, maxMs: 30_000 };

const oneJobForLong: circuits.OutageRule = { failures: 5, items: 1, overMs: 60_000 };
const unreachable: readonly circuits.OutageRule[] = [{ failures: 3, items: 2 }, oneJobForLong];
/** The target was reached and failed. The jobs themselves may be the cause, so that more failures are needed. */
const answered: readonly circuits.OutageRule[] = [{ failures: 5, items: 3 }, oneJobForLong];

export function isOpen(circuit: PushCircuit | null): circuit is OpenCircuit {
  return circuit !== null && circuit.openedAtMs !== null;
}

/** Returns the same value where the call changes nothing. */
export function noteDown(circuit: PushCircuit | null, call: DownCall, nowMs: number): PushCircuit {
  const { reason } = call;
  if (!isOpen(circuit)) return openIfDown(extend(circuit, call, nowMs), nowMs);
  return call.isProbe ? circuits.failProbe({ ...circuit, reason }, nowMs, timing) : circuit;
}

function extend(streak: PushCircuit | null, call: DownCall, nowMs: number): PushCircuit {
  const { jobId, reason } = call;
  return {
    ...circuits.extendStreak<string>(streak ?? circuits.noStreak, jobId, nowMs),
    isUnreachable: (streak?.isUnreachable ?? true) && call.isUnreachable,
    openedAtMs: null,
    reason,
    intervalMs: timing.initialMs,
    nextProbeAtMs: 0,
  };
}

function openIfDown(streak: PushCircuit, nowMs: number): PushCircuit {
  return circuits.isOutage(streak, streak.isUnreachable ? unreachable : answered, nowMs)
    ? { ...streak, openedAtMs: nowMs, ...circuits.startProbing(timing, nowMs) }
    : streak;
}

/**
 * The target has answered about the job. A call that started before the circuit opened says nothing about the time
 * since. One that started later was made by a process that did not know yet, and shows that the failures were caused
 * by another process, which may have no route to the target.
 */
export function noteContact(
  circuit: PushCircuit | null,
  { isProbe, startedAtMs }: Readonly<{ isProbe: boolean; startedAtMs: number }>,
): PushCircuit | null {
  return isOpen(circuit) && !isProbe && startedAtMs <= circuit.openedAtMs ? circuit : null;
}

/** An answer that came after the first failure of a row ends the row. */
export function sinceContact(circuit: PushCircuit | null, answeredAtMs: number): PushCircuit | null {
  return circuit !== null && !isOpen(circuit) && answeredAtMs > circuit.firstAtMs ? null : circuit;
}

/** Takes the probe if it is due; returns the same value if it is not. */
export function takeProbe(circuit: OpenCircuit, nowMs: number, leaseMs: number): PushCircuit {
  return circuits.isProbeDue(circuit, nowMs) ? circuits.takeProbe(circuit, nowMs, leaseMs) : circuit;
}

export function returnProbe(circuit: PushCircuit | null, nowMs: number): PushCircuit | null {
  return isOpen(circuit) ? circuits.returnProbe(circuit, nowMs) : circuit;
}
