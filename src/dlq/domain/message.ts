/** A message's status. The state machine is described in redrive/retry-message.ts; most of its rules are SQL. */
export const statuses = ['PENDING', 'RETRYING', 'RESOLVED', 'DEAD'] as const;
export type Status = (typeof statuses)[number];

export type MessageState = Readonly<{
  status: Status;
  retryCount: number;
  maxRetries: number;
  /** Counts every attempt; unlike the retry count it is never reset. */
  attemptNo: number;
  /** Only a RETRYING message has a lease; RETRYING without a live lease means that the worker was lost. */
  leaseIsLive: boolean;
}>;

/**
 * Why an attempt was released: nothing was sent, and the message is not the cause.
 * `cluster`: no connection, leader, producer session or quorum. `target`: the topic does not exist or is not writable.
 * `unroutable`: it has no target. `not_allowed`: `dlq.allowed_targets` does not list the target. `no_value`: it was
 * stored without its value. `no_time`: too little time was left on the lease. `not_loaded`: its bytes could not be
 * read. `unreadable`: it cannot be decrypted now. `blocked`: an earlier message with its key or in its partition was not sent. `call_ended`: the bulk call
 * ended first.
 */
export const releaseReasons = [
  'cluster',
  'target',
  'unroutable',
  'not_allowed',
  'no_value',
  'no_time',
  'not_loaded',
  'unreadable',
  'blocked',
  'call_ended',
] as const;
export type ReleaseReason = (typeof releaseReasons)[number];

/** Why messages are left out of a bulk call. */
export const exclusionReasons = [
  'in_another_redrive',
  'unroutable',
  'no_value',
  'removed_at_ingest',
  'target_missing',
  'target_not_writable',
  'target_not_allowed',
  'target_not_in_scope',
] as const;
export type ExclusionReason = (typeof exclusionReasons)[number];

/** The broker's result for a record; `failed` and `skipped` records were certainly not written. */
export type PublishEnd =
  | Readonly<{ result: 'acked' }>
  | Readonly<{ result: 'failed'; fault: 'cluster' | 'topic' | 'record' }>
  | Readonly<{ result: 'unknown' }>
  | Readonly<{ result: 'skipped' }>;

/** Null if the attempt counts: the record was written, may have been written, or was refused itself. */
export function releaseReasonOf(end: PublishEnd): ReleaseReason | null {
  if (end.result === 'skipped') return 'blocked';
  if (end.result !== 'failed' || end.fault === 'record') return null;
  return end.fault === 'topic' ? 'target' : 'cluster';
}

export function isRetryable(state: MessageState): boolean {
  const isIdle = state.status === 'PENDING' || (state.status === 'RETRYING' && !state.leaseIsLive);
  return isIdle && state.retryCount < state.maxRetries;
}

/** The record came back as a dead letter: whatever the broker answered, the consumer failed. */
export function comeBack(state: MessageState): MessageState {
  if (state.status === 'PENDING' || state.status === 'DEAD') return state;
  const status = state.retryCount >= state.maxRetries ? 'DEAD' : 'PENDING';
  return { ...state, status, leaseIsLive: false };
}
