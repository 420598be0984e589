/**
 * The state of a saga. Its log has one row per attempt, inserted open before the call and closed in place. Everything
 * else except abort requests and timers follows from that log (see fold.ts). Times are Unix milliseconds on the
 * database's clock.
 *
 *   STARTED      --first attempt opened-->              RUNNING
 *                --aborted, nothing was opened-->       CANCELLED | FAILED
 *   RUNNING      --every step done-->                   COMPLETED
 *                --a step failed for good, or aborted--> COMPENSATING
 *   COMPENSATING --everything started is undone-->      FAILED, or CANCELLED if that was asked for
 *
 * A saga that needs attention stays RUNNING or COMPENSATING; `stuck` says where and why.
 */
export const statuses = ['STARTED', 'RUNNING', 'COMPLETED', 'COMPENSATING', 'FAILED', 'CANCELLED'] as const;
export type Status = (typeof statuses)[number];

export function isTerminal(status: Status): boolean {
  return status === 'COMPLETED' || status === 'FAILED' || status === 'CANCELLED';
}

/** An action, or its undo. */
export type Op = 'EXECUTE' | 'COMPENSATE';

export type LogStatus = 'SUCCESS' | 'FAILED' | 'TIMEOUT' | 'SKIPPED';

/**
 * How an attempt ended. `unserved`: no call, because the service is not configured or too many rounds failed in a row.
 * `unavailable`: no call, because the service was down for longer than the step waits. `not_done`: an operator checked
 * that it did not happen.
 */
export const answerClasses = [
  'done',
  'refused',
  'defect',
  'unknown',
  'unserved',
  'unavailable',
  'not_done',
] as const;
export type AnswerClass = (typeof answerClasses)[number];

/** Who acted, and why. */
export type Operator = Readonly<{ actor: string; reason: string }>;

/** One row of the log. */
export type Attempt = Readonly<{
  step: number;
  op: Op;
  /** From 1 for each step and op; a retry by an operator continues the count. */
  attempt: number;
  startedAt: number;
  /** Null while the attempt is open. */
  status: LogStatus | null;
  /** Null while it is open, and if it was skipped. */
  answer: AnswerClass | null;
  /** No byte of the request was sent. */
  isUnsent: boolean;
  /** It may have taken effect and must not be repeated automatically: only an operator may retry it. */
  isLast: boolean;
  /** The service seems down: no connection, a timeout, a server error. */
  isDown: boolean;
  /** Charged to the budget, for the attempt and the wait after it; 0 while it is open, and for a probe. */
  spentMs: number;
  /** The response of a done attempt; while the attempt is open, the body of the 202 that its poll refers to. */
  output: unknown;
  error: string | null;
  /** Who wrote this row by hand or, if a call had failed, who had it retried. */
  by: Operator | null;
}>;

/** The first request wins. There is none after the pivot was opened. */
export type Abort = Readonly<{ kind: 'cancel' | 'compensate'; by: Operator; at: number }>;

/** The inputs to a transition that others can change while the saga is leased. */
export type Known = Readonly<{ abort: Abort | null; isDeadlineOver: boolean }>;

export type Compensation = 'none' | 'running' | 'done' | 'stuck' | 'resolved';

export type Stuck = Readonly<{ step: number; op: Op; reason: string }>;

/** The part of the state that follows from the log. */
export type Folded = Readonly<{
  status: Status;
  /** The first step that is not done; compensation does not change it. */
  currentStep: number;
  /** The responses of the done steps, by step name. */
  outputs: Readonly<Record<string, unknown>>;
  compensation: Compensation;
  /** Why it is being undone: the first cause, kept until the end. */
  errorMessage: string | null;
  /** Where it needs attention. */
  stuck: Stuck | null;
  pivotOpened: boolean;
}>;

/** The open attempt was answered `working`: how often, and how many polls have failed in a row since. */
export type Polling = Readonly<{ polls: number; failedPolls: number }>;

/** The next call is to a service whose circuit is open. */
export type Waiting = Readonly<{ service: string; since: number }>;

export type SagaState = Folded &
  Known &
  Readonly<{
    log: readonly Attempt[];
    deadlineAt: number | null;
    polling: Polling | null;
    waiting: Waiting | null;
    /** When it is due; null while a call is in flight, at the end, and while it needs attention. */
    wakeAt: number | null;
  }>;

/** The saga with what a settle found in the database; the transition is then computed again. */
export function withKnown(state: SagaState, { abort, isDeadlineOver }: Known): SagaState {
  return { ...state, abort, isDeadlineOver: state.isDeadlineOver || isDeadlineOver };
}
