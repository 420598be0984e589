import type { Lease } from '../../kernel/lease.ts';
import type { Resolution, SendOutcome, SendPolicy, Settlement, Status } from '../domain/order.ts';

/** What the use cases need from outside. */

/** An order on its way out. */
export type OutgoingOrder = Readonly<{
  id: bigint;
  idempotencyKey: string;
  /** The request as JSON text. */
  request: string;
  orderingKey: string | null;
  traceId: string | null;
  traceparent: string | null;
}>;

/**
 * Sends orders to one destination; one promise per order, in the same order, none of which ever rejects. What the
 * signal aborts before it was sent is released; what is under way goes on to its own timeout.
 */
export type Sender = (
  orders: readonly OutgoingOrder[],
  stopping: AbortSignal,
) => readonly Promise<SendOutcome>[];

/** What a destination says when it is asked about a key: `silent` is no answer, or none that is understood. */
export type StatusAnswer =
  | Readonly<{ known: 'done'; outcome: Extract<SendOutcome, { end: 'sent' }> }>
  | Readonly<{ known: 'absent' }>
  | Readonly<{ known: 'silent'; detail: string }>;

export type RequestFlaw = Readonly<{ field: string; reason: string; message: string }>;

/** A way to the outside, ready to use. */
export type Destination = Readonly<{
  name: string;
  type: 'http' | 'kafka' | 'smtp';
  /** Made by the system itself: not postable, no ledger, never tells a person. */
  isInternal: boolean;
  policy: SendPolicy;
  /** How many orders of it this process has under way at once. */
  maxInFlight: number;
  /** The longest that one send takes, with the question after it. */
  timeoutMs: number;
  send: Sender;
  /** Asks whether an order has happened; null where nobody can be asked. */
  askStatus: ((idempotencyKey: string) => Promise<StatusAnswer>) | null;
  /** Nothing can be sent to it in this configuration: its orders wait. */
  isDisabled: boolean;
  /** Whether requests have to be looked at before they are sent. */
  hasSchema: boolean;
  /** What is wrong with a request by the destination's JSON Schema; empty where nothing is. */
  flawsOf: (request: unknown) => readonly RequestFlaw[];
  close(): Promise<void>;
}>;

export type ClaimedOrder = OutgoingOrder &
  Readonly<{
    destination: string;
    lease: Lease;
    retryCount: number;
    /** By the database's clock at the claim. */
    ageMs: number | null;
    /** The claim, on the monotonic clock. */
    claimedAtMs: number;
    inDoubt: boolean;
    /** As it was before the claim: giving it back unsent restores this. */
    was: Readonly<{ status: 'queued' | 'failed'; firstSentAt: string | null }>;
  }>;

/** Where the last claim stopped: the next one need not look before it again. */
export type LowWater = Readonly<{ nextAttemptAt: string; id: bigint }>;

export type ClaimOptions = Readonly<{
  destination: string;
  /** `alone`: one that took its worker down and has one attempt left. */
  lane: 'free' | 'keyed' | 'alone';
  limit: number;
  retryMax: number;
  after: LowWater | null;
}>;

export type ClaimResult = Readonly<{
  orders: readonly ClaimedOrder[];
  last: LowWater | null;
  /** As many were looked at as were asked for: there may be more. */
  isFull: boolean;
  /** Keys of which some were found behind another one; they may be held back. */
  crowded: readonly string[];
}>;

export type Attempt = Readonly<{ order: ClaimedOrder; settlement: Settlement }>;

/** How an attempt stands in the database now; null where it was somebody else's by then. */
export type SettledAttempt = Readonly<{ id: bigint; status: Status | null }>;

export type DeliveryStore = Readonly<{
  claim(options: ClaimOptions): Promise<ClaimResult>;
  /** Takes what is behind another of these keys out of the claim's sight, until that one has ended. */
  holdBack(destination: string, orderingKeys: readonly string[]): Promise<void>;
  /** The due order that a circuit's probe sends: the fewest retries, and not `notId` if there is another. */
  claimProbe(options: Readonly<{ destination: string; notId: bigint | null }>): Promise<ClaimedOrder | null>;
  /** Of these keys, those whose effect is known to have happened. Waits for whoever is deciding about them. */
  succeeded(idempotencyKeys: readonly string[]): Promise<ReadonlySet<string>>;
  settle(attempts: readonly Attempt[], signal: AbortSignal): Promise<readonly SettledAttempt[]>;
  /** Ends attempts whose lease is over; how many. */
  reap(): Promise<number>;
  /** Destinations that have waiting orders, as far as that is cheap to know. */
  waitingDestinations(): Promise<readonly string[]>;
}>;

export type NewOrder = Readonly<{
  idempotencyKey: string;
  destination: string;
  /** JSON text. */
  request: string;
  digest: string;
  orderingKey: string | null;
  traceId: string | null;
  traceparent: string | null;
}>;

export type AddOutcome =
  | Readonly<{ outcome: 'created' | 'replayed'; id: bigint; httpStatus: number; answer: string }>
  | Readonly<{ outcome: 'mismatch'; id: bigint }>
  | Readonly<{ outcome: 'busy' }>;

/** What a person does to an order. */
export type OrderAction = Readonly<{
  id: bigint;
  actor: string;
  reason: string | null;
  /** They looked outside, and there was no effect (or it is dealt with). */
  effectChecked: boolean;
}>;

export type ActionOutcome =
  | Readonly<{ outcome: 'done' }>
  | Readonly<{ outcome: 'not_found' }>
  | Readonly<{ outcome: 'wrong_status'; status: Status; resolution: Resolution | null }>
  | Readonly<{ outcome: 'already_sent' }>
  | Readonly<{ outcome: 'effect_unchecked' }>
  | Readonly<{ outcome: 'busy' }>;

export type OrderStore = Readonly<{
  add(order: NewOrder, actor: string): Promise<AddOutcome>;
  cancel(action: OrderAction): Promise<ActionOutcome>;
  skip(action: OrderAction): Promise<ActionOutcome>;
  /** Adds the corrected order in the place of the old one; both or neither. */
  supersede(
    action: OrderAction,
    order: NewOrder,
  ): Promise<ActionOutcome | Readonly<{ outcome: 'added'; added: AddOutcome }>>;
}>;
