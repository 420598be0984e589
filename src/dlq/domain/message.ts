/**
 * A message's status and every legal change of it, as pure functions. The SQL of the slice says the same in
 * its WHERE and SET clauses; a property test drives both with the same random commands and compares.
 *
 *   PENDING  --start-->  RETRYING  --acked-->   RESOLVED
 *                                  --failed-->  PENDING, or DEAD at max_retries
 *                                  --released-> PENDING, the attempt taken back
 *   RETRYING --lease over--> as failed
 *   RESOLVED, RETRYING --the same record dead-letters again--> PENDING, or DEAD at max_retries
 *   PENDING, RETRYING with a lost lease --a person gives up--> DEAD
 *   DEAD, RESOLVED, PENDING at max_retries --a person reopens--> PENDING with a new budget
 *
 * An attempt is counted when it starts. So a message whose retry kills the process every time still ends DEAD,
 * and nothing rests in "RETRYING 3/3".
 */
export const statuses = ['PENDING', 'RETRYING', 'RESOLVED', 'DEAD'] as const;
export type Status = (typeof statuses)[number];

export function isStatus(text: string): text is Status {
  return (statuses as readonly string[]).includes(text);
}

export type MessageState = Readonly<{
  status: Status;
  retryCount: number;
  maxRetries: number;
  /** Counts every attempt ever made; unlike the retry count it is never reset. */
  attemptNo: number;
  /** Only a RETRYING message may hold one; a RETRYING message without a lease has lost it. */
  leaseIsLive: boolean;
}>;

/** How a started attempt ended. Only what was never handed to the broker is `released`. */
export type AttemptEnd = 'acked' | 'failed' | 'released' | 'lease_over';

export function isRetryable(state: MessageState): boolean {
  return isResting(state) && state.retryCount < state.maxRetries;
}

/** PENDING, or RETRYING with its worker lost: nobody is working on it. */
function isResting(state: MessageState): boolean {
  return state.status === 'PENDING' || (state.status === 'RETRYING' && !state.leaseIsLive);
}

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

/**
 * The worker may end its attempt even after its lease is over, as long as nobody has taken the message from
 * it: that is what the epoch beside this state tells, not the time.
 */
export function endAttempt(state: MessageState, end: AttemptEnd): MessageState | null {
  if (state.status !== 'RETRYING' || (end === 'lease_over' && state.leaseIsLive)) return null;
  switch (end) {
    case 'acked':
      return { ...state, status: 'RESOLVED', leaseIsLive: false };
    case 'failed':
    case 'lease_over':
      return { ...state, status: restAfterFailure(state), leaseIsLive: false };
    case 'released':
      return { ...state, status: 'PENDING', retryCount: state.retryCount - 1, leaseIsLive: false };
  }
}

function restAfterFailure(state: MessageState): 'PENDING' | 'DEAD' {
  return state.retryCount >= state.maxRetries ? 'DEAD' : 'PENDING';
}

/** What we sent has come back as a dead letter: whatever the broker said, the consumer has failed. */
export function comeBack(state: MessageState): MessageState {
  if (state.status === 'PENDING' || state.status === 'DEAD') return state;
  return { ...state, status: restAfterFailure(state), leaseIsLive: false };
}

export function giveUp(state: MessageState): MessageState | null {
  return isResting(state) ? { ...state, status: 'DEAD', leaseIsLive: false } : null;
}

export function reopen(state: MessageState): MessageState | null {
  const isSpent = state.status === 'PENDING' && state.retryCount >= state.maxRetries;
  if (state.status !== 'DEAD' && state.status !== 'RESOLVED' && !isSpent) return null;
  return { ...state, status: 'PENDING', retryCount: 0 };
}

export function isDeletable(state: MessageState): boolean {
  return state.status !== 'RETRYING' || !state.leaseIsLive;
}
