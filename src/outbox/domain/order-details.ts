import type { AttemptSummary, AuditEntry } from './attempts.ts';
import type { Resolution, Status } from './order.ts';

/** An order as it is stored, live or archived. */
export type Order = Readonly<{
  id: bigint;
  idempotencyKey: string;
  destination: string;
  orderingKey: string | null;
  orderingSeq: bigint | null;
  /** Blocked by an earlier order of its ordering key. */
  isBlocked: boolean;
  status: Status;
  resolution: Resolution | null;
  retryCount: number;
  nextAttemptAt: Date;
  firstSentAt: Date | null;
  lastError: string | null;
  /** Of the last error. */
  fingerprint: string | null;
  inDoubt: boolean;
  /** JSON text as PostgreSQL writes it; null if it is too large to show. */
  requestText: string | null;
  requestDigest: string;
  /** The destination's answer as JSON text. */
  responseText: string | null;
  /** The answer is too large to show. */
  isResponseOmitted: boolean;
  traceId: string | null;
  traceparent: string | null;
  supersedesId: bigint | null;
  supersededById: bigint | null;
  /** Null without authentication, and if it was added in SQL, by the client library or by the system. */
  createdBy: string | null;
  createdAt: Date;
  /** With microseconds, for cursors. */
  createdAtExact: string;
  updatedAt: Date;
  archivedAt: Date | null;
}>;

/** An order with its attempts and its audit log, oldest first. */
export type OrderHistory = Readonly<{
  order: Order;
  attempts: readonly AttemptSummary[];
  audit: readonly AuditEntry[];
}>;

/** Where an order stands among the unfinished orders of its ordering key. */
export type LanePosition = Readonly<{
  /** The first order of the key that is neither sent nor resolved, if it comes before this one. */
  blockedById: bigint | null;
  behind: number;
  /** More orders wait than were counted. */
  isLowerBound: boolean;
}>;

/** `lane` is null without an ordering key, and once the order is sent or resolved. */
export type OrderDetails = OrderHistory & Readonly<{ lane: LanePosition | null }>;
