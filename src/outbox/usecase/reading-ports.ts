import type { AuditEntry } from '../domain/attempts.ts';
import type { Resolution, Status } from '../domain/order.ts';

/** What reading needs from outside: orders and the ledger as they stand, live and archived. */

export type Order = Readonly<{
  id: bigint;
  idempotencyKey: string;
  destination: string;
  orderingKey: string | null;
  orderingSeq: bigint | null;
  /** Seen to stand behind an earlier one of its ordering key. */
  isHeld: boolean;
  status: Status;
  resolution: Resolution | null;
  retryCount: number;
  nextAttemptAt: Date;
  firstSentAt: Date | null;
  lastError: string | null;
  inDoubt: boolean;
  /** PostgreSQL's own JSON text; null in a list where it is too large to show. */
  requestText: string | null;
  requestDigest: string;
  /** What the destination answered, as JSON text. */
  responseText: string | null;
  traceId: string | null;
  traceparent: string | null;
  supersedesId: bigint | null;
  supersededById: bigint | null;
  createdAt: Date;
  /** With its microseconds, for cursors. */
  createdAtExact: string;
  updatedAt: Date;
  archivedAt: Date | null;
}>;

export type OrderFilter = Readonly<{
  status?: Status | undefined;
  destination?: string | undefined;
  idempotencyKey?: string | undefined;
  /** Created at or after it. */
  createdFrom?: Date | undefined;
  /** Created before it. */
  createdTo?: Date | undefined;
  /** Dead, and nobody has decided what becomes of it. */
  needsPerson?: true | undefined;
}>;

/** The last order that was seen. */
export type Keyset = Readonly<{ id: string; createdAt: string | null }>;

export type ListWindow = Readonly<{ limit: number; offset: number; after: Keyset | null }>;

export type Count = Readonly<{ total: number; isEstimate: boolean }>;

/** One use of a key: a key is free again when its use has been archived. */
export type LedgerEntry = Readonly<{
  idempotencyKey: string;
  requestDigest: string;
  resultDigest: string | null;
  status: 'accepted' | 'succeeded' | 'failed';
  outsideId: string | null;
  orderId: bigint;
  /** Null until the order is sent or resolved: till then it does not expire. */
  expiresAt: Date | null;
  createdAt: Date;
  updatedAt: Date;
  archivedAt: Date | null;
}>;

/** What waits for a destination and what is under way to it, in all processes. */
export type Backlog = Readonly<{
  destination: string;
  waiting: Count;
  /** Of the oldest that waits; null where none does. */
  lagSeconds: number | null;
  inFlight: number;
}>;

export type OrderReader = Readonly<{
  find(id: bigint): Promise<Order | null>;
  /** Every transition, oldest first. */
  audit(id: bigint): Promise<readonly AuditEntry[]>;
  /** Newest first: by `id`, and where the filter names a time, by `created_at`. */
  list(filter: OrderFilter, window: ListWindow): Promise<readonly Order[]>;
  count(filter: OrderFilter): Promise<Count>;
  /** The answer that a key's first use got, if it was for a request of this digest. */
  replay(idempotencyKey: string, digest: string): Promise<Readonly<{ id: bigint; answer: string }> | null>;
  /** Every use of a key, the newest first. */
  uses(idempotencyKey: string): Promise<readonly LedgerEntry[]>;
  /** Of these destinations, and of every other that has orders waiting or under way. */
  backlogs(destinations: readonly string[]): Promise<readonly Backlog[]>;
}>;
