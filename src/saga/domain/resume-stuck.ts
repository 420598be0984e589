import { isForwardOnly } from './budget.ts';
import { settlementOf, type Context, type Settlement } from './settlement.ts';
import type { Attempt, SagaState, Stuck } from './saga-state.ts';
import { isSafeToRepeat } from './step-log.ts';
import { attemptsOf, replaced } from './step-log.ts';
import type { Workflow } from './workflow/workflow.ts';

/** The actor of automatic retries in the log. */
export const AUTO_RESUME = 'saga.auto_resume';
export const MAX_AUTO_RESUMES = 3;

/**
 * A service is back. A saga that needs attention only because the service was down is retried as if by an operator, at
 * most a few times, and never if an operator has acted on it. Null if it stays stuck.
 */
export function resumeStuck(
  workflow: Workflow,
  state: SagaState,
  service: string,
  context: Context,
): Settlement | null {
  const { stuck, log } = state;
  if (stuck === null || workflow.steps[stuck.step]?.service !== service) return null;
  const last = attemptsOf(log, stuck.step, stuck.op).at(-1);
  if (last === undefined || !wasUnavailable(last) || !mayBeCalledAgain(workflow, state, stuck, context))
    return null;
  const acts = log.flatMap(({ by }) => (by === null ? [] : [by.actor]));
  if (acts.length >= MAX_AUTO_RESUMES || acts.some((actor) => actor !== AUTO_RESUME)) return null;
  const by = { actor: AUTO_RESUME, reason: `the service ${service} is available again` };
  return settlementOf({ workflow, state, context }, replaced(log, { ...last, by }), 'until claimed');
}

function wasUnavailable({ answer, isDown, isLast }: Attempt): boolean {
  return answer === 'unavailable' || (answer === 'unknown' && isDown && !isLast);
}

/** Undos that are idempotent or were never sent, and idempotent actions after the pivot. */
function mayBeCalledAgain(
  workflow: Workflow,
  { log }: SagaState,
  stuck: Stuck,
  { serviceOf }: Context,
): boolean {
  const service = serviceOf(workflow.steps[stuck.step]?.service ?? '');
  if (stuck.op === 'COMPENSATE') return isSafeToRepeat(service, log, stuck);
  return isForwardOnly(workflow, log, stuck.step) && service?.isIdempotent === true;
}
