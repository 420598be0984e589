import type { Saga } from './settlement.ts';
import type { Answer, Failure } from './judge-answer.ts';
import { actionQuietAt } from './call-timing.ts';
import type { Attempt } from './saga-state.ts';
import { hasCallInDoubt, isInDoubt } from './step-log.ts';
import type { Workflow } from './workflow/workflow.ts';

/** The request that polls the open attempt after a 202, if its step names one; only actions have it. */
export function pollOf({ steps }: Workflow, { step, op }: Attempt): string | null {
  return (op === 'EXECUTE' ? steps[step]?.poll : undefined) ?? null;
}

/**
 * What an answer means for this attempt. Its class says what it means for a first and only call; earlier calls, and
 * whether the service is idempotent, may change that.
 */
export function interpretAnswer(saga: Saga, open: Attempt, answer: Answer): Answer {
  if (answer.class === 'working') return workingMeans(saga, open, answer);
  if (answer.class === 'done') return answer;
  if (answer.isNotFound === true && open.op === 'COMPENSATE') return notFoundMeans(saga, open, answer);
  const isAfter202 = saga.state.polling !== null;
  return isAfter202 && answer.class === 'refused' ? doubtful(answer) : answer;
}

/**
 * An undo that is answered "not found" is done if the action may not have happened, or an earlier call of this undo may
 * have done it; but only after the action can no longer arrive.
 */
function notFoundMeans({ workflow, state, context }: Saga, open: Attempt, answer: Failure): Answer {
  const { step } = open;
  const mayBeGone =
    isInDoubt(state.log, step) || hasCallInDoubt(state.log, step, 'COMPENSATE') || state.polling !== null;
  if (!mayBeGone) return answer;
  if (context.now < actionQuietAt(workflow, state, step))
    return { ...answer, class: 'unknown', detail: `${answer.detail}: the action may still arrive` };
  return { class: 'done', output: null, note: `${answer.detail}: nothing is left to undo` };
}

/** Polling with the same request would be a second call: without a named poll, the 202 of such a service is final. */
function workingMeans(
  { workflow, context }: Saga,
  open: Attempt,
  answer: Extract<Answer, { class: 'working' }>,
): Answer {
  const service = context.serviceOf(workflow.steps[open.step]?.service ?? '');
  if (service?.isIdempotent !== false || pollOf(workflow, open) !== null) return answer;
  const { output } = answer;
  if (output !== undefined) return { class: 'done', output };
  const detail = 'it was answered 202 with a body that cannot be read';
  return { class: 'unknown', detail, isTimeout: false, isUnsent: false };
}

/** The action had begun: a refusal of the repeated request does not say how it ended. */
function doubtful(refusal: Failure): Failure {
  return { ...refusal, class: 'unknown', detail: `${refusal.detail}, after a 202`, isFinal: true };
}
