import { backoffMs, type Backoff } from '../../kernel/backoff.ts';

/**
 * An order's status and every legal change of it, as pure functions. The SQL of the slice says the same in its
 * WHERE and SET clauses.
 *
 *   queued  --claimed-->  sending  --done-->                       sent
 *                                  --failed, retries are left-->   failed
 *                                  --failed, none are left-->      dead
 *                                  --refused, or in doubt and not safe to send again--> dead
 *                                  --given back unsent-->          queued, or failed as it was before
 *   failed  --backoff is over, claimed--> queued --> sending
 *   sending --lease is over--> as failed and in doubt
 *   queued, failed --a person cancels--> dead, cancelled
 *   dead    --a person skips or supersedes--> dead, skipped or superseded
 *   dead without a resolution --its success becomes known late--> sent
 *
 * Whenever the ledger knows that the outside effect has happened, the order becomes sent instead.
 *
 * A retry is counted when an attempt ends in failure. The first send costs none: a budget of 8 is 9 sends.
 */
export const statuses = ['queued', 'sending', 'sent', 'failed', 'dead'] as const;
export type Status = (typeof statuses)[number];

export const resolutions = ['cancelled', 'skipped', 'superseded'] as const;
export type Resolution = (typeof resolutions)[number];

/** The first word of `last_error`. */
export type ErrorCode =
  | 'NETWORK_TIMEOUT'
  | 'BROKER_5XX'
  | 'RATE_LIMITED'
  | 'BAD_REQUEST'
  | 'UNAUTHORIZED'
  | 'CONFLICT_PROCESSED'
  | 'CONFLICT_RUNNING'
  | 'CANCELLED'
  | 'UNKNOWN';

/** What a destination answered, as far as it is kept. */
export type Answer = Readonly<{
  /** The HTTP status; null where there is none (Kafka, mail). */
  status: number | null;
  /** Of the answer's body: `sha256:<hex>`. */
  digest: string;
  /** The destination's own name for what it did. */
  outsideId: string | null;
}>;

/**
 * How one attempt to send ended. `failed` certainly had no effect, `unknown` may have had it; `limited` was
 * asked to come later; `refused` will never be accepted; `released` was never sent and costs nothing.
 */
export type SendOutcome =
  | Readonly<{ end: 'sent'; answer: Answer; isConflict: boolean }>
  | Readonly<{ end: 'failed'; code: ErrorCode; detail: string; retryAfterMs?: number | undefined }>
  | Readonly<{ end: 'unknown'; code: ErrorCode; detail: string; retryAfterMs?: number | undefined }>
  | Readonly<{ end: 'limited'; detail: string; retryAfterMs?: number | undefined }>
  | Readonly<{ end: 'refused'; code: 'BAD_REQUEST' | 'UNAUTHORIZED'; detail: string }>
  | Readonly<{
      end: 'released';
      reason: string;
      retryAfterMs?: number | undefined;
      /** Nobody could be reached to send it to. */
      isOutage?: boolean | undefined;
    }>;

/** What a destination promises about sending twice, and how long an order may try. */
export type SendPolicy = Readonly<{
  /**
   * `none`: a second send may have a second effect. `enforced`: not within the window since the first send.
   * `consumer`: always safe to send again, because who reads it drops doubles by the key (Kafka) or bears them.
   */
  idempotency: 'none' | 'enforced' | 'consumer';
  dedupWindowMs: number;
  retryMax: number;
  backoff: Backoff;
  /** Since its first send; for orders that are only ever asked to come later. */
  maxAgeMs: number;
}>;

/** An order as far as the decisions about it go. */
export type OrderState = Readonly<{
  retryCount: number;
  /** Since the first send; null before it. */
  ageMs: number | null;
  inDoubt: boolean;
}>;

/** How an attempt is written down. */
export type Settlement =
  | Readonly<{ to: 'sent'; answer: Answer; isConflict: boolean }>
  /** The ledger says that it has happened: nothing was sent again. */
  | Readonly<{ to: 'known' }>
  | Readonly<{ to: 'failed'; error: string; inDoubt: boolean; delayMs: number; costsRetry: boolean }>
  | Readonly<{ to: 'dead'; error: string; inDoubt: boolean }>
  /** Dead without a byte having left in this attempt. */
  | Readonly<{ to: 'unsendable'; error: string }>
  | Readonly<{ to: 'released'; reason: string; delayMs: number }>;

/** May it be sent again although an earlier attempt may have had its effect? */
export function isSafeToResend(order: OrderState, policy: SendPolicy): boolean {
  switch (policy.idempotency) {
    case 'consumer':
      return true;
    case 'enforced':
      return (order.ageMs ?? 0) < policy.dedupWindowMs;
    case 'none':
      return false;
  }
}

/** What follows from the end of an attempt; one that is in doubt was asked about before, where that is possible. */
export function decideSettlement(
  order: OrderState,
  outcome: SendOutcome,
  policy: SendPolicy,
  random: () => number = Math.random,
): Settlement {
  switch (outcome.end) {
    case 'sent':
      return { to: 'sent', answer: outcome.answer, isConflict: outcome.isConflict };
    case 'refused':
      return die(outcome, order.inDoubt);
    case 'released':
      return { to: 'released', reason: outcome.reason, delayMs: outcome.retryAfterMs ?? 0 };
    case 'limited':
      return decideLimited(order, outcome, policy, random);
    case 'failed':
      return decideFailed(order, { ...outcome, inDoubt: order.inDoubt }, policy, random);
    case 'unknown':
      return isSafeToResend(order, policy)
        ? decideFailed(order, { ...outcome, inDoubt: true }, policy, random)
        : die(outcome, true);
  }
}

/**
 * The same for an order that was sent to find out whether a destination works again: a failure is the
 * destination's, not the order's, and costs it nothing. Doubt is doubt all the same.
 */
export function decideProbe(order: OrderState, outcome: SendOutcome, policy: SendPolicy): Settlement {
  const isFailure = outcome.end === 'failed' || outcome.end === 'unknown';
  const isRefusedByAll = outcome.end === 'refused' && outcome.code === 'UNAUTHORIZED';
  if (!isFailure && !isRefusedByAll) return decideSettlement(order, outcome, policy);
  if (outcome.end === 'unknown' && !isSafeToResend(order, policy)) return die(outcome, true);
  const inDoubt = order.inDoubt || outcome.end === 'unknown';
  return {
    to: 'failed',
    error: errorText(outcome.code, outcome.detail),
    inDoubt,
    delayMs: 0,
    costsRetry: false,
  };
}

type Failure = Readonly<{
  code: ErrorCode;
  detail: string;
  inDoubt: boolean;
  retryAfterMs?: number | undefined;
}>;

function decideFailed(
  order: OrderState,
  failure: Failure,
  policy: SendPolicy,
  random: () => number,
): Settlement {
  const { inDoubt } = failure;
  // Who is told to the end that the order is being worked on cannot know that nothing comes of it.
  if (order.retryCount >= policy.retryMax)
    return die(failure, inDoubt || failure.code === 'CONFLICT_RUNNING');
  const error = errorText(failure.code, failure.detail);
  const delayMs = delayOf(order.retryCount + 1, failure.retryAfterMs, policy, random);
  return { to: 'failed', error, inDoubt, delayMs, costsRetry: true };
}

/** Asked to come later: costs no retry, but does not go on for ever. */
function decideLimited(
  order: OrderState,
  { detail, retryAfterMs }: Readonly<{ detail: string; retryAfterMs?: number | undefined }>,
  policy: SendPolicy,
  random: () => number,
): Settlement {
  const { inDoubt } = order;
  if ((order.ageMs ?? 0) >= policy.maxAgeMs) return die({ code: 'RATE_LIMITED', detail }, inDoubt);
  const error = errorText('RATE_LIMITED', detail);
  const delayMs = delayOf(1, retryAfterMs, policy, random);
  return { to: 'failed', error, inDoubt, delayMs, costsRetry: false };
}

/** Whoever reads UNKNOWN has to look outside: the effect may be there. All other codes say that it is not. */
function die({ code, detail }: Readonly<{ code: ErrorCode; detail: string }>, inDoubt: boolean): Settlement {
  const isTold = !inDoubt || code === 'UNKNOWN';
  return {
    to: 'dead',
    error: isTold ? errorText(code, detail) : errorText('UNKNOWN', `${code}: ${detail}`),
    inDoubt,
  };
}

/** A destination that names a time is not asked earlier, and all who were told the same time do not come at once. */
function delayOf(
  failures: number,
  retryAfterMs: number | undefined,
  policy: SendPolicy,
  random: () => number,
): number {
  const backoff = backoffMs(policy.backoff, failures, random);
  return Math.max(backoff, (retryAfterMs ?? 0) * (1 + policy.backoff.jitter * random()));
}

/** `CODE: detail`, as it is stored. */
export function errorText(code: ErrorCode, detail: string): string {
  return `${code}: ${detail}`;
}
