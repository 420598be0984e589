/**
 * A saga as the engine knows it. What it has done is its log, one row per attempt, opened before the call and closed
 * in place; everything else about it but its wishes and its clock follows from that log (see fold.ts). All times are
 * milliseconds since 1970 on the database's clock.
 *
 *   STARTED      --first attempt opened-->              RUNNING
 *                --aborted, nothing was opened-->       CANCELLED | FAILED
 *   RUNNING      --every step done-->                   COMPLETED
 *                --a step failed for good, or aborted--> COMPENSATING
 *   COMPENSATING --everything started is undone-->      FAILED, or CANCELLED if that was asked for
 *
 * A saga that waits for a person keeps RUNNING or COMPENSATING, and says where it is stuck.
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
 * How an attempt ended. `unserved`: its service is not configured, or the saga has come to nothing too often, so there
 * was no call. `not_done`: a person has looked, and it has not happened.
 */
export type AnswerClass = 'done' | 'refused' | 'defect' | 'unknown' | 'unserved' | 'not_done';

export type Person = Readonly<{ actor: string; reason: string }>;

/** One row of the log. */
export type Attempt = Readonly<{
  step: number;
  op: Op;
  /** From 1, for each step and op; it goes on after a person's retry. */
  attempt: number;
  startedAt: number;
  /** Null exactly while the attempt is open. */
  status: LogStatus | null;
  /** Null while it is open, and for what was skipped. */
  answer: AnswerClass | null;
  /** Certainly no byte of the request has left. */
  isUnsent: boolean;
  /** It may have had its effect, and the service does not bear a second call: only a person may call it again. */
  isLast: boolean;
  /** What a done attempt was answered. */
  output: unknown;
  error: string | null;
  /** Who wrote this row by hand, or, where a call had failed, who let it be tried again. */
  by: Person | null;
}>;

/** The first one wins, and only before the pivot is opened. */
export type Abort = Readonly<{ kind: 'cancel' | 'compensate'; by: Person; at: number }>;

/** What decides, beside the log, where a saga stands: as the last settle knew it. */
export type Known = Readonly<{ abort: Abort | null; isDeadlineOver: boolean }>;

export type Compensation = 'none' | 'running' | 'done' | 'stuck' | 'resolved';

export type Stuck = Readonly<{ step: number; op: Op; reason: string }>;

/** What follows from the log. */
export type Folded = Readonly<{
  status: Status;
  /** The first step that is not done; compensation does not move it. */
  currentStep: number;
  /** Of the done steps, by name. */
  outputs: Readonly<Record<string, unknown>>;
  compensation: Compensation;
  /** Why it turned round: the first cause, to the end. */
  errorMessage: string | null;
  /** Where it waits for a person. */
  stuck: Stuck | null;
  pivotOpened: boolean;
}>;

/** The open attempt was answered `working`: how often so far, and how many polls since then have failed in a row. */
export type Polling = Readonly<{ polls: number; failedPolls: number }>;

export type SagaState = Folded &
  Known &
  Readonly<{
    log: readonly Attempt[];
    deadlineAt: number | null;
    polling: Polling | null;
    /** When it is to be claimed next; null while a call is in flight, at the end, and while it waits for a person. */
    wakeAt: number | null;
  }>;

export function newSaga(now: number, deadlineAt: number | null): SagaState {
  return {
    status: 'STARTED',
    currentStep: 0,
    outputs: {},
    compensation: 'none',
    errorMessage: null,
    stuck: null,
    pivotOpened: false,
    abort: null,
    isDeadlineOver: false,
    log: [],
    deadlineAt,
    polling: null,
    wakeAt: now,
  };
}

/** The same saga after a settle has found that more is known by now; what was decided is decided again with it. */
export function withKnown(state: SagaState, { abort, isDeadlineOver }: Known): SagaState {
  return { ...state, abort, isDeadlineOver: state.isDeadlineOver || isDeadlineOver };
}
