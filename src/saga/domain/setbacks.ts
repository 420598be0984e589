import { budgetOf, locate } from './locate.ts';
import type { SagaState } from './saga-state.ts';
import { spentAttempts } from './step-log.ts';
import type { Workflow } from './workflow.ts';

/**
 * A setback is a round that came to nothing: the process was lost with the saga in it, or could not deal with it. They
 * are counted in a row, until an answer comes: the attempts in the log do not tell all of them, for a saga may take its
 * process down before it has opened one.
 */

/** So many workers lost in a row, and it runs alone: what takes its process down takes no neighbour with it. */
export const ALONE_FROM = 2;

/** So many, and a person is asked. */
export const MOST_SETBACKS = 5;

/** One more loss, and it turns round or waits for a person, perhaps through no fault of its own. */
export function hasOneAttemptLeft(workflow: Workflow, state: SagaState): boolean {
  const { what } = locate(workflow, state, state.log);
  if (what.at !== 'call') return false;
  const { step, op } = what;
  return budgetOf(workflow, state.log, step, op) - spentAttempts(state.log, step, op) === 1;
}
