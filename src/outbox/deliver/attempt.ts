import type { Clock } from '../../kernel/clock.ts';
import type { OrderState, SendOutcome, Settlement } from '../domain/order.ts';
import type { ClaimedOrder } from './claim-orders.ts';
import type { OpenDestination, StatusAnswer } from './senders/port.ts';

/** One attempt to deliver a claimed order. */
export type Attempt = Readonly<{
  order: ClaimedOrder;
  destination: OpenDestination;
  clock: Clock;
  /** The order is sent to find out whether the destination works again. */
  isProbe: boolean;
}>;

/** How an attempt is settled, and the outcome of the send or of a status question; null if neither was made. */
export type AttemptResult = Readonly<{
  order: ClaimedOrder;
  settlement: Settlement;
  outcome: SendOutcome | null;
}>;

export function stateOf({ order, clock }: Attempt): OrderState {
  const sinceClaimMs = clock.monotonicMs() - order.claimedAtMs;
  return {
    retryCount: order.retryCount,
    ageMs: (order.ageMs ?? 0) + sinceClaimMs,
    inDoubt: order.inDoubt,
  };
}

export async function askStatus({ destination, order }: Attempt): Promise<StatusAnswer> {
  if (destination.askStatus === null)
    return {
      known: 'silent',
      detail: 'a second send could have a second effect, and the destination has no status URL',
    };
  return destination.askStatus(order.idempotencyKey);
}

/** The result for an order whose destination confirmed the effect. */
export function confirmed(
  order: ClaimedOrder,
  outcome: Extract<SendOutcome, { end: 'sent' }>,
): AttemptResult {
  const { answer, isConflict } = outcome;
  return { order, settlement: { to: 'sent', answer, isConflict }, outcome };
}
