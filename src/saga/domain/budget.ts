import { formatDuration } from '../../kernel/duration.ts';
import type { Op, SagaState } from './saga-state.ts';
import { isInDoubt, isPivotPassed, spentAttempts, spentMs } from './step-log.ts';
import type { Workflow } from './workflow/workflow.ts';

/**
 * How often or how long a step is tried before it is given up or needs attention. An action has a number of attempts,
 * after which the saga is undone. An undo has a time, and so does an action after the pivot. The log says per attempt
 * what it was charged; time during which the service's circuit was open is free.
 */
export type Budget =
  | Readonly<{ kind: 'attempts'; most: number }>
  | Readonly<{ kind: 'time'; mostMs: number }>;

export const DEFAULT_UNDO_FOR_MS = 24 * 3_600_000;
export const DEFAULT_WAIT_FOR_SERVICE_MS = 3_600_000;

type Log = SagaState['log'];

export function budgetOf({ steps }: Workflow, log: Log, step: number, op: Op): Budget {
  const { retry, undoForMs = DEFAULT_UNDO_FOR_MS } = steps[step] ?? {};
  return isTimed({ steps }, log, step, op)
    ? { kind: 'time', mostMs: undoForMs }
    : { kind: 'attempts', most: retry?.maxAttempts ?? 1 };
}

function isTimed(workflow: Pick<Workflow, 'steps'>, log: Log, step: number, op: Op): boolean {
  return op === 'COMPENSATE' || isForwardOnly(workflow, log, step);
}

/** After the pivot, or at the pivot if it is in doubt. */
export function isForwardOnly(workflow: Pick<Workflow, 'steps'>, log: Log, step: number): boolean {
  const isAtPivot = workflow.steps[step]?.isPivot === true;
  return isPivotPassed(workflow, log) || (isAtPivot && isInDoubt(log, step));
}

/** Says that the budget is used up; null if it is not. */
export function exhaustedReason(workflow: Workflow, log: Log, step: number, op: Op): string | null {
  const budget = budgetOf(workflow, log, step, op);
  const attempts = spentAttempts(log, step, op);
  if (budget.kind === 'attempts')
    return attempts >= budget.most ? `${attempts} of ${budget.most} attempts failed` : null;
  if (spentMs(log, step, op) < budget.mostMs) return null;
  return `${attempts === 1 ? '1 attempt' : `${attempts} attempts`} in ${formatDuration(budget.mostMs)} failed`;
}

/** How long a call waits for a service whose circuit is open. */
export function maxServiceWaitMs(workflow: Workflow, log: Log, step: number, op: Op): number {
  const budget = budgetOf(workflow, log, step, op);
  if (budget.kind === 'time') return budget.mostMs;
  return workflow.steps[step]?.waitForServiceMs ?? DEFAULT_WAIT_FOR_SERVICE_MS;
}
