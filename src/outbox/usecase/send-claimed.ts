import type { Clock } from '../../kernel/clock.ts';
import { messageOf } from '../../kernel/errors.ts';
import { hasTimeFor } from '../../kernel/lease.ts';
import {
  decideProbe,
  decideSettlement,
  errorText,
  isSafeToResend,
  type OrderState,
  type SendOutcome,
  type SendPolicy,
  type Settlement,
} from '../domain/order.ts';
import type { ClaimedOrder, DeliveryStore, Destination } from './ports.ts';

/** How an attempt is to be written down, and what the destination did; null where it was not asked at all. */
export type Sent = Readonly<{ order: ClaimedOrder; settlement: Settlement; outcome: SendOutcome | null }>;

export type SendDeps = Readonly<{ store: DeliveryStore; clock: Clock }>;

export type SendOptions = Readonly<{
  stopping: AbortSignal;
  /** It is sent to find out whether the destination works again. */
  isProbe?: boolean;
}>;

/**
 * Brings claimed orders to their destination; one promise per order, none of which rejects. Before any byte
 * leaves: what the ledger knows to have happened is not sent again; what the destination would refuse by its schema
 * is not sent at all; what is in doubt is sent again only where that is safe, or where the destination says that it
 * has not happened; and nothing is sent without enough of its lease left.
 */
export function sendClaimed(
  deps: SendDeps,
  destination: Destination,
  orders: readonly ClaimedOrder[],
  { stopping, isProbe = false }: SendOptions,
): readonly Promise<Sent>[] {
  const decide = isProbe ? decideProbe : decideSettlement;
  const one = (order: ClaimedOrder): Sending => ({ deps, destination, order, stopping, decide });
  const fresh = orders.filter(({ was }) => was.firstSentAt === null);
  const again = orders.filter(({ was }) => was.firstSentAt !== null);
  const results = new Map<bigint, Promise<Sent>>();

  const flaws = new Map(fresh.map((order) => [order.id, flawIn(order, destination)]));
  const sendable = fresh.filter(({ id }) => flaws.get(id) === null);
  for (const order of fresh) {
    const flaw = flaws.get(order.id) ?? null;
    if (flaw !== null) results.set(order.id, Promise.resolve(unsendable(order, flaw)));
  }
  const sends = sendAll(sendable.map(one));
  sendable.forEach((order, i) => results.set(order.id, sends[i] ?? never(order)));

  const known = again.length === 0 ? Promise.resolve(new Set<string>()) : readLedger(deps.store, again);
  for (const order of again) results.set(order.id, resend(one(order), known));
  return orders.map((order) => results.get(order.id) ?? never(order));
}

type Sending = Readonly<{
  deps: SendDeps;
  destination: Destination;
  order: ClaimedOrder;
  stopping: AbortSignal;
  decide: (order: OrderState, outcome: SendOutcome, policy: SendPolicy) => Settlement;
}>;

/** Together, so that a destination that takes many at once gets many at once. */
function sendAll(sendings: readonly Sending[]): readonly Promise<Sent>[] {
  const [first] = sendings;
  if (first === undefined) return [];
  const { destination, stopping, deps } = first;
  const inTime = sendings.filter(({ order }) => hasTimeFor(order.lease, destination.timeoutMs, deps.clock));
  const outcomes = destination.send(
    inTime.map(({ order }) => order),
    stopping,
  );
  const byId = new Map(inTime.map(({ order }, i) => [order.id, outcomes[i]]));
  return sendings.map(async (sending) => {
    const outcome = await byId.get(sending.order.id);
    return outcome === undefined
      ? released(sending.order, 'not enough of the lease was left to send')
      : conclude(sending, outcome);
  });
}

async function resend(sending: Sending, ledger: Promise<ReadonlySet<string> | Error>): Promise<Sent> {
  const { order, destination } = sending;
  const known = await ledger;
  if (known instanceof Error) return released(order, `the ledger could not be read: ${messageOf(known)}`);
  if (known.has(order.idempotencyKey)) return { order, settlement: { to: 'known' }, outcome: null };
  // Its worker was lost in the last attempt that it had: it is asked about, and not sent again.
  const isSpent = order.retryCount > destination.policy.retryMax;
  if (isSpent || (order.inDoubt && !isSafeToResend(stateOf(sending), destination.policy))) {
    const answer = await ask(sending);
    if (answer.known === 'done')
      return { order, settlement: settlementOf(answer.outcome), outcome: answer.outcome };
    if (answer.known === 'silent' || isSpent) {
      const said = answer.known === 'silent' ? answer.detail : 'the destination knows nothing of it yet';
      const error = errorText('UNKNOWN', `an earlier attempt may have had its effect; ${said}`);
      return { order, settlement: { to: 'dead', error, inDoubt: true }, outcome: null };
    }
  }
  const [sent] = sendAll([sending]);
  return sent ?? never(order);
}

/** What follows from the answer. Before an order dies in doubt, or is sent again in doubt, the destination is asked. */
async function conclude(sending: Sending, outcome: SendOutcome): Promise<Sent> {
  const { order, destination, decide } = sending;
  const settlement = decide(stateOf(sending), outcome, destination.policy);
  const mustAsk = settlement.to === 'dead' && settlement.inDoubt && destination.askStatus !== null;
  // The time for the question was kept free when it was sent. Were it short all the same, a late word is a fact too.
  if (!mustAsk) return { order, settlement, outcome };
  const answer = await ask(sending);
  switch (answer.known) {
    case 'done':
      return { order, settlement: settlementOf(answer.outcome), outcome: answer.outcome };
    case 'absent':
      return { order, settlement: withoutEffect(sending, outcome, settlement), outcome };
    case 'silent':
      return {
        order,
        settlement: { ...settlement, error: `${settlement.error}; ${answer.detail}` },
        outcome,
      };
  }
}

/**
 * The destination says that it has not happened: an attempt that was in doubt has failed, no more. But a request may
 * still be on its way, so the doubt stays: whoever sends it again asks again, and who decides about it looks first.
 */
function withoutEffect(sending: Sending, outcome: SendOutcome, inDoubt: Settlement): Settlement {
  const { decide, destination } = sending;
  const certain: SendOutcome = outcome.end === 'unknown' ? { ...outcome, end: 'failed' } : outcome;
  const settlement = decide({ ...stateOf(sending), inDoubt: false }, certain, destination.policy);
  return settlement.to === 'failed' ? { ...settlement, inDoubt: true } : inDoubt;
}

async function ask({ destination, order }: Sending): ReturnType<NonNullable<Destination['askStatus']>> {
  if (destination.askStatus === null)
    return { known: 'silent', detail: 'sending it again is not safe, and nobody can be asked' };
  return destination.askStatus(order.idempotencyKey);
}

function settlementOf({ answer, isConflict }: Extract<SendOutcome, { end: 'sent' }>): Settlement {
  return { to: 'sent', answer, isConflict };
}

function stateOf({ order, deps }: Sending): OrderState {
  const sinceClaimMs = deps.clock.monotonicMs() - order.claimedAtMs;
  return {
    retryCount: order.retryCount,
    ageMs: (order.ageMs ?? 0) + sinceClaimMs,
    inDoubt: order.inDoubt,
  };
}

async function readLedger(
  store: DeliveryStore,
  orders: readonly ClaimedOrder[],
): Promise<ReadonlySet<string> | Error> {
  try {
    return await store.succeeded(orders.map(({ idempotencyKey }) => idempotencyKey));
  } catch (error) {
    return error instanceof Error ? error : new Error(messageOf(error));
  }
}

/** Orders that did not come over HTTP have not been looked at before. */
function flawIn(order: ClaimedOrder, destination: Destination): string | null {
  if (!destination.hasSchema) return null;
  const [flaw] = destination.flawsOf(JSON.parse(order.request));
  return flaw === undefined ? null : `${flaw.field} ${flaw.message}`;
}

function unsendable(order: ClaimedOrder, flaw: string): Sent {
  return { order, settlement: { to: 'unsendable', error: errorText('BAD_REQUEST', flaw) }, outcome: null };
}

function released(order: ClaimedOrder, reason: string): Sent {
  return { order, settlement: { to: 'released', reason, delayMs: 0 }, outcome: null };
}

/** A sender that gave no promise for an order has not sent it. */
async function never(order: ClaimedOrder): Promise<Sent> {
  return released(order, 'the sender did not take it');
}
