import { backoffMs, type Backoff } from '../../kernel/backoff.ts';

/**
 * The pure decisions about an order: whether it may be sent again, and what the outcome of an attempt means for it.
 * deliver/dispatch-orders.ts describes its states and their transitions.
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

/** The part of a destination's answer that is stored. */
export type Answer = Readonly<{
  /** The HTTP status; null for Kafka and mail. */
  status: number | null;
  /** Digest of the answer's body: `sha256:<hex>`. */
  digest: string;
  /** The destination's own id for the effect. */
  outsideId: string | null;
}>;

/**
 * The outcome of one attempt to send. `failed`: certainly without effect. `unknown`: it may have had its effect.
 * `limited`: rate limited. `refused`: the destination will never accept it. `released`: not sent, costs no retry.
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
      /** The destination was unreachable. */
      isOutage?: boolean | undefined;
    }>;

/** What a destination guarantees about duplicates, and how long an order is retried. */
export type SendPolicy = Readonly<{
  /**
   * `none`: a second send may have a second effect. `enforced`: not within `dedupWindowMs` of the first send.
   * `consumer`: always safe to resend, because consumers drop duplicates by their key (Kafka) or tolerate them (mail).
   */
  idempotency: 'none' | 'enforced' | 'consumer';
  dedupWindowMs: number;
  retryMax: number;
  backoff: Backoff;
  /** Limit on the age since the first send, for orders that are always rate limited. */
  maxAgeMs: number;
}>;

/** The state of an order that the decisions depend on. */
export type OrderState = Readonly<{
  retryCount: number;
  /** Since the first send; null before it. */
  ageMs: number | null;
  inDoubt: boolean;
}>;

/** What an attempt changes about its order. */
export type Settlement =
  | Readonly<{ to: 'sent'; answer: Answer; isConflict: boolean }>
  /** The ledger records the effect, so the order was not sent again. */
  | Readonly<{ to: 'known' }>
  | Readonly<{ to: 'failed'; error: string; inDoubt: boolean; delayMs: number; costsRetry: boolean }>
  | Readonly<{ to: 'dead'; error: string; inDoubt: boolean }>
  /** Dead, and nothing was sent in this attempt. */
  | Readonly<{ to: 'unsendable'; error: string }>
  | Readonly<{ to: 'released'; reason: string; delayMs: number }>;

/** Whether an order can be sent again although an earlier attempt may have had its effect. */
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

/** The settlement for the outcome of an attempt. */
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
 * The settlement for the outcome of a probe: a failure is attributed to the destination and costs the order no retry.
 * An unknown outcome leaves it in doubt as usual.
 */
export function decideProbe(order: OrderState, outcome: SendOutcome, policy: SendPolicy): Settlement {
  const isFailure = outcome.end === 'failed' || outcome.end === 'unknown';
  const isUnauthorized = outcome.end === 'refused' && outcome.code === 'UNAUTHORIZED';
  if (!isFailure && !isUnauthorized) return decideSettlement(order, outcome, policy);
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
  // If the last answer was that the order is still being processed, it may yet have its effect.
  if (order.retryCount >= policy.retryMax)
    return die(failure, inDoubt || failure.code === 'CONFLICT_RUNNING');
  const error = errorText(failure.code, failure.detail);
  const delayMs = delayOf(order.retryCount + 1, failure.retryAfterMs, policy, random);
  return { to: 'failed', error, inDoubt, delayMs, costsRetry: true };
}

/** Rate limited: costs no retry, but is limited by the order's age. */
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

/** UNKNOWN means that the effect may have happened, and somebody has to check; all other codes mean that it has not. */
function die({ code, detail }: Readonly<{ code: ErrorCode; detail: string }>, inDoubt: boolean): Settlement {
  const isCertain = !inDoubt || code === 'UNKNOWN';
  return {
    to: 'dead',
    error: isCertain ? errorText(code, detail) : errorText('UNKNOWN', `${code}: ${detail}`),
    inDoubt,
  };
}

/** Waits at least as long as the destination asked for; jitter spreads orders that were given the same time. */
function delayOf(
  failures: number,
  retryAfterMs: number | undefined,
  policy: SendPolicy,
  random: () => number,
): number {
  const backoff = backoffMs(policy.backoff, failures, random);
  return Math.max(backoff, (retryAfterMs ?? 0) * (1 + policy.backoff.jitter * random()));
}

/** `CODE: detail`, the format of `last_error`. */
export function errorText(code: ErrorCode, detail: string): string {
  return `${code}: ${detail}`;
}

/** The error of an attempt whose lease expired. */
export const leaseExpired = errorText('UNKNOWN', 'lease expired');
