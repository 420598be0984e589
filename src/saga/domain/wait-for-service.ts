import { formatDuration } from '../../kernel/duration.ts';
import type { Context, Saga } from './settlement.ts';
import type { Attempt, SagaState, Waiting } from './saga-state.ts';

/**
 * A saga does not call a service whose circuit is open. It is woken when the circuit closes; as a backstop it checks
 * again after this time.
 */
const RECHECK_MS = 300_000;

export function recheckAt({ now, random }: Context): number {
  return now + Math.round(RECHECK_MS * (0.75 + random() / 2));
}

/**
 * Which service the saga waits for and since when; null if the service can be called. A changed plan starts a new wait,
 * a failed probe does not.
 */
export function serviceWait(
  { state, context, isProbe }: Saga,
  log: SagaState['log'],
  cause: string | null,
  service: string,
): Waiting | null {
  if (context.isDown?.(service) !== true) return null;
  const { waiting, errorMessage } = state;
  const isSamePlan = cause === errorMessage && (log === state.log || isProbe === true);
  const isSame = waiting?.service === service && isSamePlan;
  return isSame ? waiting : { service, since: context.now };
}

/** A failed attempt without a call: the service was down for too long. */
export function unavailable(row: Attempt, { service, since }: Waiting, now: number): Attempt {
  const error = `the service ${service} was unavailable for ${formatDuration(now - since)}`;
  return { ...row, status: 'TIMEOUT', answer: 'unavailable', isUnsent: true, isDown: true, error };
}
