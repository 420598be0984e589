import { errorText, type Status } from './order.ts';

/** One row of the audit: a change of status, or a fact that changed none. */
export type AuditEntry = Readonly<{
  /** Grows with every row. */
  id: bigint;
  statusFrom: Status | null;
  statusTo: Status;
  retryCount: number;
  lastError: string | null;
  at: Date;
  actor: string;
  reason: string | null;
  traceId: string | null;
  brokerOrderId: string | null;
  leaseEpoch: bigint | null;
}>;

/**
 * How one attempt to send ended. `lease_expired`: its worker was lost, and what it did is not known. `late_success`:
 * the same, but its worker came back and had succeeded. `already_sent`: another attempt had succeeded, as became
 * known while this one was under way. `released`: given back unsent. `unknown`: its end is not in the audit.
 */
export type AttemptOutcome =
  | 'running'
  | 'sent'
  | 'failed'
  | 'dead'
  | 'released'
  | 'lease_expired'
  | 'late_success'
  | 'already_sent'
  | 'unknown';

export type AttemptSummary = Readonly<{
  no: number;
  /** Null where the audit of that time is gone. */
  startedAt: Date | null;
  endedAt: Date | null;
  outcome: AttemptOutcome;
  /** The error that it ended with, or why it was given back. */
  error: string | null;
  /** The destination's own name for what it did. */
  outsideId: string | null;
  leaseEpoch: bigint | null;
}>;

type Attempt = Omit<AttemptSummary, 'no'>;

/**
 * The story of the attempts, from all audit rows of one order. An attempt begins with a row to `sending` and ends
 * with the next row from there. A late success is a row that changes nothing, or brings the dead back, and belongs
 * to the attempt of its lease's epoch, however many have begun since.
 */
export function attemptsOf(audit: readonly AuditEntry[]): readonly AttemptSummary[] {
  const attempts: Attempt[] = [];
  for (const entry of audit.toSorted((a, b) => (a.id < b.id ? -1 : 1))) {
    if (isLateSuccess(entry)) noteLateSuccess(attempts, entry);
    else if (entry.statusTo === 'sending') begin(attempts, entry);
    else if (entry.statusFrom === 'sending') end(attempts, entry);
  }
  return attempts.map((attempt, i) => ({ no: i + 1, ...attempt }));
}

/** What a person decides about a dead order changes no status either, but names no attempt. */
function isLateSuccess({ statusFrom, statusTo, leaseEpoch, brokerOrderId }: AuditEntry): boolean {
  if (statusFrom === 'dead' && statusTo === 'sent') return true;
  return statusFrom === statusTo && (leaseEpoch !== null || brokerOrderId !== null);
}

function begin(attempts: Attempt[], entry: AuditEntry): void {
  const i = attempts.findIndex(isRunning);
  const before = attempts[i];
  if (before !== undefined) attempts[i] = { ...before, outcome: 'unknown' };
  attempts.push({
    startedAt: entry.at,
    endedAt: null,
    outcome: 'running',
    error: null,
    outsideId: null,
    leaseEpoch: entry.leaseEpoch,
  });
}

function end(attempts: Attempt[], entry: AuditEntry): void {
  const outcome = outcomeOf(entry);
  const error = outcome === 'released' ? entry.reason : entry.lastError;
  const ended = { endedAt: entry.at, outcome, error, outsideId: entry.brokerOrderId };
  const i = attempts.findIndex(isRunning);
  const running = attempts[i];
  if (running === undefined) attempts.push({ startedAt: null, ...ended, leaseEpoch: null });
  else attempts[i] = { ...running, ...ended };
}

function isRunning({ outcome }: Attempt): boolean {
  return outcome === 'running';
}

const leaseExpired = errorText('UNKNOWN', 'lease expired');

function outcomeOf({ statusTo, lastError, reason }: AuditEntry): AttemptOutcome {
  switch (statusTo) {
    case 'sent':
      return reason === null ? 'sent' : 'already_sent';
    case 'dead':
      return lastError === leaseExpired ? 'lease_expired' : 'dead';
    case 'failed':
      if (lastError === leaseExpired) return 'lease_expired';
      return reason === null ? 'failed' : 'released';
    case 'queued':
    case 'sending':
      return 'released';
  }
}

function noteLateSuccess(attempts: Attempt[], entry: AuditEntry): void {
  const { at: endedAt, brokerOrderId: outsideId, leaseEpoch } = entry;
  const late = { endedAt, outcome: 'late_success', error: null, outsideId } as const;
  const i = attempts.findLastIndex((attempt) => leaseEpoch !== null && attempt.leaseEpoch === leaseEpoch);
  const lost = attempts[i];
  if (lost === undefined) attempts.push({ startedAt: null, ...late, leaseEpoch });
  else attempts[i] = { ...lost, ...late };
}
