import { decideProbe, decideSettlement, type SendOutcome, type Settlement } from '../domain/order.ts';
import { askStatus, confirmed, stateOf, type Attempt, type AttemptResult } from './attempt.ts';

/**
 * Decides how an attempt is settled. Before an order dies in doubt, the destination is asked for its status; the
 * lease check before the send has left time for that.
 */
export async function judgeOutcome(attempt: Attempt, outcome: SendOutcome): Promise<AttemptResult> {
  const { order, destination } = attempt;
  const settlement = decide(attempt, outcome);
  const mustAsk = settlement.to === 'dead' && settlement.inDoubt && destination.askStatus !== null;
  if (!mustAsk) return { order, settlement, outcome };
  const answer = await askStatus(attempt);
  switch (answer.known) {
    case 'done':
      return confirmed(order, answer.outcome);
    case 'absent':
      return { order, settlement: withoutEffect(attempt, outcome, settlement), outcome };
    case 'silent':
      return {
        order,
        settlement: { ...settlement, error: `${settlement.error}; ${answer.detail}` },
        outcome,
      };
  }
}

function decide(attempt: Attempt, outcome: SendOutcome, state = stateOf(attempt)): Settlement {
  const { policy } = attempt.destination;
  return attempt.isProbe ? decideProbe(state, outcome, policy) : decideSettlement(state, outcome, policy);
}

/**
 * The destination says that the effect is missing, so the attempt has failed. A request may still be on its way,
 * though: the order stays in doubt, and the next attempt asks again.
 */
function withoutEffect(attempt: Attempt, outcome: SendOutcome, inDoubt: Settlement): Settlement {
  const failed: SendOutcome = outcome.end === 'unknown' ? { ...outcome, end: 'failed' } : outcome;
  const settlement = decide(attempt, failed, { ...stateOf(attempt), inDoubt: false });
  return settlement.to === 'failed' ? { ...settlement, inDoubt: true } : inDoubt;
}
