import { backoffMs } from '../../kernel/backoff.ts';
import { isForwardOnly } from './locate.ts';
import type { Attempt, Op, Polling, SagaState } from './saga-state.ts';
import { isPivotOpened, spentAttempts } from './step-log.ts';
import type { Workflow } from './workflow.ts';

/** How long an attempt may be answered `working`, since its start. */
export const WORKING_TIMEOUT_MS = 3_600_000;

/** What a paused worker and the network may add between the opening of an attempt and its arrival. */
const LATE_MS = 300_000;

const JITTER = 0.1;
const UNDO_BACKOFF = { initialMs: 1000, maxMs: 60_000, jitter: JITTER };
const POLL_BACKOFF = { initialMs: 1000, maxMs: 30_000, jitter: JITTER };
const MAX_FORWARD_BACKOFF_MS = 3_600_000;

/** The wait after the last failed attempt of a step; what the service asks for is a lower bound. */
export function retryDelayMs(
  workflow: Workflow,
  log: SagaState['log'],
  { step, op }: Readonly<{ step: number; op: Op }>,
  asked: Readonly<{ retryAfterMs: number | undefined; random: () => number }>,
): number {
  const failures = spentAttempts(log, step, op);
  const policy = workflow.steps[step]?.retry;
  const isLimited = op === 'EXECUTE' && !isForwardOnly(workflow, log, step);
  const backoff =
    isLimited && policy
      ? {
          initialMs: policy.initialIntervalMs,
          maxMs: policy.backoff === 'fixed' ? policy.initialIntervalMs : MAX_FORWARD_BACKOFF_MS,
          jitter: JITTER,
        }
      : UNDO_BACKOFF;
  return Math.max(backoffMs(backoff, failures, asked.random), asked.retryAfterMs ?? 0);
}

/** A service that names a time is asked then, but never in a tight circle. */
export function pollDelayMs(
  { polls, failedPolls }: Polling,
  asked: Readonly<{ retryAfterMs: number | undefined; random: () => number }>,
): number {
  if (asked.retryAfterMs !== undefined) return Math.max(asked.retryAfterMs, POLL_BACKOFF.initialMs);
  return backoffMs(POLL_BACKOFF, polls + failedPolls, asked.random);
}

/**
 * The last moment at which this attempt may begin at its participant. An action that nobody waits for any more must
 * not begin, so the saga's own deadline bounds it, until the pivot is opened: from then on there is no deadline, and a
 * pivot in doubt that could not begin again could never be done.
 */
export function latestBeginOf(
  workflow: Workflow,
  { log, deadlineAt }: Pick<SagaState, 'log' | 'deadlineAt'>,
  { step, op, startedAt }: Attempt,
): number {
  const own = startedAt + (workflow.steps[step]?.timeoutMs ?? 0) + LATE_MS;
  const isBounded = op === 'EXECUTE' && deadlineAt !== null && !isPivotOpened(workflow, log);
  return isBounded ? Math.min(own, deadlineAt) : own;
}

/** From then on no call of this step, neither action nor undo, that has ever been opened can still begin. */
export function stepQuietAt(
  workflow: Workflow,
  saga: Pick<SagaState, 'log' | 'deadlineAt'>,
  step: number,
): number {
  const called = saga.log.filter((row) => row.step === step && !row.isUnsent);
  return Math.max(0, ...called.map((row) => latestBeginOf(workflow, saga, row) + 1));
}
