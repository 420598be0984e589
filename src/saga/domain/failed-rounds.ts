import { budgetOf } from './budget.ts';
import { locate } from './locate.ts';
import type { SagaState } from './saga-state.ts';
import { spentAttempts } from './step-log.ts';
import type { Workflow } from './workflow/workflow.ts';

/**
 * A round fails if its process dies while it runs the saga, or cannot process it. Failed rounds in a row are counted
 * until a call is answered (column `failed_rounds`). The attempts in the log are no substitute: a saga may crash its process
 * before it has opened one.
 */

/** From this many failed rounds in a row, the saga runs alone, so that a crash affects no other saga. */
export const RUNS_ALONE_FROM = 2;

/** After this many failed rounds in a row, the saga needs attention. */
export const MAX_FAILED_ROUNDS = 5;

/** Whether one more lost worker would use up the step's attempts, possibly through no fault of the saga. */
export function hasOneAttemptLeft(workflow: Workflow, state: SagaState): boolean {
  const { what } = locate(workflow, state, state.log);
  if (what.at !== 'call') return false;
  const { step, op } = what;
  const budget = budgetOf(workflow, state.log, step, op);
  return budget.kind === 'attempts' && budget.most - spentAttempts(state.log, step, op) === 1;
}
