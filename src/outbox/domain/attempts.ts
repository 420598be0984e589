import { leaseExpired, type Status } from './order.ts';

/** One row of the audit log: a transition, or a fact that changed no status. */
export type AuditEntry = Readonly<{
  /** Increases with every row. */
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
 * The outcome of one attempt. `lease_expired`: its worker was lost, and the outcome is unknown. `late_success`: its
 * worker reported success after the lease had expired. `already_sent`: the success of an earlier attempt became known
 * while this one was running. `released`: not sent. `unknown`: its end is missing from the audit log.
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
  /** Null if that part of the audit log has been deleted. */
  startedAt: Date | null;
  endedAt: Date | null;
  outcome: AttemptOutcome;
  /** The error, or why the order was released. */
  error: string | null;
  /** The destination's own id for the effect. */
  outsideId: string | null;
  leaseEpoch: bigint | null;
}>;

type Attempt = Omit<AttemptSummary, 'no'>;

/**
 * The attempts of one order, from its audit rows. An attempt starts with a row to `sending` and ends with the next row
 * from `sending`. A late success is a row that changes no status, or one from dead to sent; it belongs to the attempt
 * with its lease epoch, however many attempts have started since.
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

/** A decision about a dead order changes no status either, but has no lease epoch and no outside id. */
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
