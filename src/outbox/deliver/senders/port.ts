import type { Destination } from '../../destinations.ts';
import type { SendOutcome } from '../../domain/order.ts';

/** An order as its destination gets it. */
export type OutgoingOrder = Readonly<{
  id: bigint;
  idempotencyKey: string;
  /** The request as JSON text; empty if it is too large to be read and sent. */
  request: string;
  orderingKey: string | null;
  traceId: string | null;
  traceparent: string | null;
}>;

/**
 * Sends orders to one destination: HTTP, Kafka or mail. Returns one promise per order, in the same order, none of
 * which rejects. When the signal aborts, orders that were not sent yet are released; the others run to their timeout.
 */
export type Sender = (
  orders: readonly OutgoingOrder[],
  stopping: AbortSignal,
) => readonly Promise<SendOutcome>[];

/** A destination's answer to a status question; `silent` is no answer, or one that cannot be interpreted. */
export type StatusAnswer =
  | Readonly<{ known: 'done'; outcome: Extract<SendOutcome, { end: 'sent' }> }>
  | Readonly<{ known: 'absent' }>
  | Readonly<{ known: 'silent'; detail: string }>;

/** A destination with its sender. */
export type OpenDestination = Destination &
  Readonly<{
    /** The longest that one send takes, including a status question after it. */
    timeoutMs: number;
    send: Sender;
    /** Asks whether an order has had its effect; null if the destination has no status URL. */
    askStatus: ((idempotencyKey: string) => Promise<StatusAnswer>) | null;
    /** Nothing can be sent in this configuration (Kafka without a broker), so its orders wait. */
    isDisabled: boolean;
    /** Whether requests are validated before they are sent. */
    hasSchema: boolean;
    close(): Promise<void>;
  }>;
