import { backoffMs } from '../../kernel/backoff.ts';
import { budgetOf } from './budget.ts';
import type { Attempt, Polling, SagaState } from './saga-state.ts';
import { isPivotOpened, replaced, spentAttempts, spentMs } from './step-log.ts';
import type { Workflow } from './workflow/workflow.ts';

/** How long an attempt may be answered `working`, from its start. */
export const WORKING_TIMEOUT_MS = 3_600_000;

/** Allowance for a paused worker and the network, between the opening of an attempt and its arrival. */
const LATE_MS = 300_000;

const JITTER = 0.1;
const UNDO_BACKOFF = { initialMs: 1000, maxMs: 300_000, jitter: JITTER };
const POLL_BACKOFF = { initialMs: 1000, maxMs: 30_000, jitter: JITTER };
const MAX_FORWARD_BACKOFF_MS = 3_600_000;

/** What a failed attempt costs its budget, and the backoff before the next one. */
export type Charge = Readonly<{ spentMs: number; waitMs: number }>;

type Asked = Readonly<{ retryAfterMs: number | undefined; random: () => number }>;

/**
 * The attempt is charged its duration, at most its timeout: a row that a lost worker left open for a day was not tried
 * for a day. The backoff never uses up the budget, so the last attempt comes at its very end. While the service's
 * circuit is open, no backoff is charged.
 */
export function chargeOf(
  workflow: Workflow,
  { log, polling }: Pick<SagaState, 'log' | 'polling'>,
  failed: Attempt,
  { now, isDown, ...asked }: Asked & Readonly<{ now: number; isDown: boolean }>,
): Charge {
  const { step, op, startedAt } = failed;
  const longestMs = polling === null ? (workflow.steps[step]?.timeoutMs ?? 0) : WORKING_TIMEOUT_MS;
  const tookMs = Math.max(1, Math.min(Math.round(now - startedAt), longestMs));
  const after = replaced(log, { ...failed, spentMs: tookMs });
  const wantedMs = retryDelayMs(workflow, after, failed, asked);
  const budget = budgetOf(workflow, after, step, op);
  const leftMs = budget.kind === 'time' ? budget.mostMs - spentMs(after, step, op) : Infinity;
  const waitMs = Math.round(Math.min(wantedMs, Math.max(0, leftMs - 1)));
  return { waitMs, spentMs: tookMs + (isDown ? 0 : waitMs) };
}

/** Retry-After is a lower bound. */
function retryDelayMs(
  workflow: Workflow,
  log: SagaState['log'],
  { step, op }: Attempt,
  asked: Asked,
): number {
  const failures = spentAttempts(log, step, op);
  const policy = workflow.steps[step]?.retry;
  const isLimited = budgetOf(workflow, log, step, op).kind === 'attempts';
  const backoff =
    isLimited && policy
      ? {
          initialMs: policy.initialIntervalMs,
          maxMs:
            policy.backoff === 'fixed'
              ? policy.initialIntervalMs
              : (policy.maxIntervalMs ?? MAX_FORWARD_BACKOFF_MS),
          jitter: JITTER,
        }
      : { ...UNDO_BACKOFF, maxMs: policy?.maxIntervalMs ?? UNDO_BACKOFF.maxMs };
  return Math.max(backoffMs(backoff, failures, asked.random), asked.retryAfterMs ?? 0);
}

/** Respects Retry-After, but never polls in a tight loop. */
export function pollDelayMs(
  { polls, failedPolls }: Polling,
  asked: Readonly<{ retryAfterMs: number | undefined; random: () => number }>,
): number {
  if (asked.retryAfterMs !== undefined) return Math.max(asked.retryAfterMs, POLL_BACKOFF.initialMs);
  return backoffMs(POLL_BACKOFF, polls + failedPolls, asked.random);
}

/**
 * The latest time at which a participant may begin this attempt. The saga's deadline bounds an action until the pivot
 * is opened: an action of an aborted saga must not begin. After that there is no deadline: a pivot in doubt that could
 * not begin again could never be completed.
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

/** After this time no attempt at the step's action can still begin or run. */
export function actionQuietAt(
  workflow: Workflow,
  saga: Pick<SagaState, 'log' | 'deadlineAt'>,
  step: number,
): number {
  const timeoutMs = workflow.steps[step]?.timeoutMs ?? 0;
  const called = saga.log.filter((row) => row.step === step && row.op === 'EXECUTE' && !row.isUnsent);
  return Math.max(0, ...called.map((row) => latestBeginOf(workflow, saga, row) + timeoutMs + 1));
}

/** After this time no attempt at the step, action or undo, can still begin. */
export function stepQuietAt(
  workflow: Workflow,
  saga: Pick<SagaState, 'log' | 'deadlineAt'>,
  step: number,
): number {
  const called = saga.log.filter((row) => row.step === step && !row.isUnsent);
  return Math.max(0, ...called.map((row) => latestBeginOf(workflow, saga, row) + 1));
}
