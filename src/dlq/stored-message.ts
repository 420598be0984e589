import type { Header } from '../kernel/broker-record.ts';
import { AppError } from '../kernel/errors.ts';
import { isUuid } from '../kernel/uuid.ts';
import { scopeOfItem } from '../platform/http/access/item-scope.ts';
import type { ItemScope } from '../platform/http/access/route-access.ts';
import type { Queryable } from '../platform/postgres/database.ts';
import { sql, type Sql } from '../platform/postgres/sql.ts';
import type { RemovablePart } from './domain/dead-letter.ts';
import type { MessageState, Status } from './domain/message.ts';
import type { UnreadableCode } from './domain/payloads.ts';

/** A message as the flows hand it to each other. */
export type Message = Readonly<{
  id: string;
  originalTopic: string;
  errorMessage: string;
  retryCount: number;
  maxRetries: number;
  /** The JSON text from PostgreSQL: parsing it would round its numbers. */
  payloadText: string | null;
  /** Lists omit large payloads; the single message has them. */
  isPayloadOmitted: boolean;
  /** Of the value, in lists that leave the payload out; null where there is no value. */
  value?: Readonly<{ bytes: bigint | null; start: Buffer | null }>;
  status: Status;
  createdAt: Date;
  /** With microseconds: a cursor in milliseconds would skip rows. */
  createdAtExact: string;
  updatedAt: Date;
  lastRetryAt: Date | null;
  sourceTopic: string | null;
  sourcePartition: number | null;
  sourceOffset: bigint | null;
  key: Buffer | null;
  /** Lists omit long keys. */
  isKeyOmitted: boolean;
  dialect: string | null;
  errorClass: string | null;
  errorStack: string | null;
  consumerGroup: string | null;
  originalPartition: number | null;
  originalOffset: bigint | null;
  originalTimestamp: Date | null;
  fingerprint: string | null;
  unroutable: boolean;
  /** An operator chose its topic. */
  isRouted: boolean;
  parentId: string | null;
  resolution: string | null;
  attemptNo: number;
  /** When its retry policy retries it; both are null without one. */
  nextAttemptAt: Date | null;
  retryPolicy: string | null;
  /** How often it was edited. */
  version: number;
  /** With the version it is the entity tag. */
  epoch: bigint;
  isArchived: boolean;
  /** Its record is stored encrypted. */
  isSealed: boolean;
  /** Why its key, payload and stack are not shown; null if they are. */
  unreadable: UnreadableCode | null;
  /** Parts from which content was removed before it was stored; null if none was. */
  removedParts: readonly RemovablePart[] | null;
}>;

/** What decides which actions are allowed, without the texts and bytes, which can be large. */
export type MessageHead = MessageState &
  Readonly<{
    id: string;
    leaseLost: boolean;
    version: number;
    epoch: bigint;
    originalTopic: string;
    sourceTopic: string | null;
    unroutable: boolean;
    isRouted: boolean;
    hasValue: boolean;
    removedParts: readonly RemovablePart[] | null;
    isArchived: boolean;
  }>;

/** Also finds archived messages. */
export type FindHead = (id: string) => Promise<MessageHead | null>;

/** The bytes that were read, and that a retry publishes. */
export type MessageBody = Readonly<{ key: Buffer | null; value: Buffer | null; headers: readonly Header[] }>;

/** A position in the order of lists and claims. */
export type Keyset = Readonly<{ createdAt: string; id: string }>;

export function messageNotFound(id: string): AppError {
  return new AppError('SYS_DLQ_NOT_FOUND', 'not_found', `dlq message not found: ${id}`);
}

/** The history outlives the message: of a deleted one the topic in its last entry counts. */
export function historyScope(db: Queryable): ItemScope {
  return messageScopeOf(
    db,
    (id) => sql`
      UNION ALL
      (SELECT h.original_topic AS topic FROM dlq.message_history h
       WHERE h.message_id = ${id} AND h.original_topic IS NOT NULL
         AND NOT EXISTS (SELECT 1 FROM dlq.dlq_messages m WHERE m.id = ${id})
         AND NOT EXISTS (SELECT 1 FROM dlq.dlq_messages_archive a WHERE a.id = ${id})
       ORDER BY h.id DESC LIMIT 1)`,
  );
}

/** A role may be narrowed to topics; the original topic of the message counts. */
export function messageScope(db: Queryable): ItemScope {
  return messageScopeOf(db, () => sql``);
}

function messageScopeOf(db: Queryable, others: (id: string) => Sql): ItemScope {
  return scopeOfItem('topics', {
    param: 'id',
    read: parseMessageId,
    async namesOf(id) {
      const rows = await db.query<{ topic: string }>(sql`
        SELECT original_topic AS topic FROM dlq.dlq_messages WHERE id = ${id}
        UNION ALL
        SELECT original_topic AS topic FROM dlq.dlq_messages_archive WHERE id = ${id}
        ${others(id)}`);
      return rows.length === 0 ? undefined : rows.map(({ topic }) => topic);
    },
    notFound: messageNotFound,
  });
}

/** For an action that may choose another topic: `target_topic` of the body must be in scope, too. */
export function targetScope(db: Queryable): ItemScope {
  const ofMessage = messageScope(db);
  return {
    ...ofMessage,
    async namesOf(request) {
      const { target_topic: target } = request.body as Readonly<{ target_topic?: string }>;
      const names = await ofMessage.namesOf(request);
      return names === undefined || target === undefined ? names : [...names, target];
    },
  };
}

/** Rejects an invalid id before it reaches the database; clients rely on the wording. */
export function parseMessageId(text: string): string {
  if (!isUuid(text))
    throw new AppError('SYS_DLQ_VALIDATION_ERROR', 'validation', `invalid message id: ${text.slice(0, 100)}`);
  return text.toLowerCase();
}
