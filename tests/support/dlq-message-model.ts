import { isRetryable, type MessageState } from '../../src/dlq/domain/message.ts';

/**
 * The transitions that the dlq slice implements in SQL, as pure functions. A property test runs the same random
 * commands against both and compares. Null: the transition is not allowed.
 */
export type AttemptEnd = 'acked' | 'failed' | 'released' | 'lease_expired';

export function startAttempt(state: MessageState): MessageState | null {
  if (!isRetryable(state)) return null;
  return {
    ...state,
    status: 'RETRYING',
    retryCount: state.retryCount + 1,
    attemptNo: state.attemptNo + 1,
    leaseIsLive: true,
  };
}

/** A worker may settle after its lease expired as long as its epoch is current, which is not part of this state. */
export function endAttempt(state: MessageState, end: AttemptEnd): MessageState | null {
  if (state.status !== 'RETRYING' || (end === 'lease_expired' && state.leaseIsLive)) return null;
  const idle = { ...state, leaseIsLive: false };
  switch (end) {
    case 'acked':
      return { ...idle, status: 'RESOLVED' };
    case 'failed':
    case 'lease_expired':
      return { ...idle, status: state.retryCount >= state.maxRetries ? 'DEAD' : 'PENDING' };
    case 'released':
      return { ...idle, status: 'PENDING', retryCount: state.retryCount - 1 };
  }
}

export function markDead(state: MessageState): MessageState | null {
  const isIdle = state.status === 'PENDING' || (state.status === 'RETRYING' && !state.leaseIsLive);
  return isIdle ? { ...state, status: 'DEAD', leaseIsLive: false } : null;
}

export function reopen(state: MessageState): MessageState | null {
  const isSpent = state.status === 'PENDING' && state.retryCount >= state.maxRetries;
  if (state.status !== 'DEAD' && state.status !== 'RESOLVED' && !isSpent) return null;
  return { ...state, status: 'PENDING', retryCount: 0 };
}

export function isDeletable(state: MessageState): boolean {
  return state.status !== 'RETRYING' || !state.leaseIsLive;
}
