import type { Header } from '../../kernel/broker-record.ts';
import { AppError } from '../../kernel/errors.ts';
import { staleTag } from '../../platform/http/entity-tag.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { publishedParts } from '../domain/dead-letter.ts';
import type { Status } from '../domain/message.ts';
import type { Payloads } from '../domain/payloads.ts';
import {
  isInDoubt,
  maxVersions,
  refuseEdit,
  type AttemptEvents,
  type EditableMessage,
  type EditRefusal,
} from '../domain/message-edit.ts';
import type { IsAllowedTarget } from '../domain/target-rule.ts';
import { isLegalTopic } from '../domain/legal-topic.ts';
import { hasValue, recordValue } from '../messages-table.ts';
import { messageTag } from '../present.ts';
import { messageNotFound } from '../stored-message.ts';
import { sealChanges, type StoredChanges } from './seal-changes.ts';
import { addHistory, endLease, live, wrongTarget, type Action, type ActionDeps } from './act-on-message.ts';

export type EditDeps = ActionDeps &
  Readonly<{
    payloads: Payloads;
    isAllowedTarget: IsAllowedTarget;
    /** Whether the bytes have a JSON view. */
    isJson: (bytes: Buffer) => boolean;
  }>;

/** What is undefined stays as it is. */
export type Changes = Readonly<{
  key?: Buffer | null;
  value?: Buffer | null;
  headers?: readonly Header[];
  targetTopic?: string;
}>;

export type Edit = Action &
  Readonly<{
    changes: Changes;
    /** The states of the message that the caller has read. */
    tags: readonly string[];
    maySendTwice: boolean;
  }>;

export type EditedMessage = Readonly<{ version: number; epoch: bigint }>;

/**
 * Makes a new version of a message. The message's row gets the new record, which the next retry publishes; all versions,
 * with the original as version 0, stay in `dlq.message_versions`. The new epoch keeps everything from going on that was
 * decided about the version before: a planned redrive skips the message, and another edit is refused.
 */
export async function editMessage(deps: EditDeps, edit: Edit): Promise<EditedMessage> {
  if (edit.changes.targetTopic !== undefined) requireTarget(deps, edit.changes.targetTopic);
  const stored = await sealChanges(deps, edit.id, edit.changes);
  const tryEdit = (): Promise<EditedMessage | Refused> =>
    deps.db.transaction((tx) => editInTransaction(tx, deps, { ...edit, stored }));
  let result = await tryEdit();
  // A retry whose worker was lost is reaped first; the caller has to read what it leaves.
  if ('refusal' in result && result.refusal === 'being_retried' && (await deps.reap(edit.id)) > 0)
    result = await tryEdit();
  if ('refusal' in result) throw await explainRefusal(deps, edit.id, result);
  return result;
}

export type Refused = Readonly<{ refusal: EditRefusal | 'not_found'; message: EditedState | null }>;

export type EditedState = EditableMessage &
  Readonly<{
    originalTopic: string;
    retryCount: number;
    maxRetries: number;
    isUnroutable: boolean;
    hasPayload: boolean;
  }>;

async function editInTransaction(
  tx: Queryable,
  deps: EditDeps,
  edit: Edit & Readonly<{ stored: StoredChanges }>,
): Promise<EditedMessage | Refused> {
  const message = await readEditable(tx, edit.id, sql`FOR UPDATE`);
  if (message === null) return { refusal: 'not_found', message };
  const { tags, maySendTwice, changes } = edit;
  const refusal = refuseEdit(message, { tags, maySendTwice, givesValue: changes.value !== undefined });
  if (refusal !== null) return { refusal, message };
  const edited = await writeVersion(tx, deps, edit);
  const detail = describeEdit(message, edit);
  const { status } = message;
  const topics = [...new Set([message.originalTopic, changes.targetTopic ?? message.originalTopic])];
  const { version } = edited;
  await addHistory(tx, edit, { event: 'edited', from: status, to: status, detail, version, topics });
  return edited;
}

type LockedRow = Readonly<{
  status: Status;
  retryCount: number;
  maxRetries: number;
  version: number;
  epoch: bigint;
  originalTopic: string;
  isUnroutable: boolean;
  hasValue: boolean;
  hasPayload: boolean;
}>;

/** What decides whether the message may be edited; `lock` is the end of the statement. */
export async function readEditable(db: Queryable, id: string, lock: Sql): Promise<EditedState | null> {
  const [row] = await db.query<LockedRow>(sql`
    SELECT t.status, t.retry_count AS "retryCount", t.max_retries AS "maxRetries", t.version, t.lease_epoch AS epoch,
           t.original_topic AS "originalTopic", t.unroutable AS "isUnroutable", ${hasValue} AS "hasValue",
           t.payload IS NOT NULL AS "hasPayload"
    FROM ${live} t WHERE t.id = ${id} ${lock}`);
  if (row === undefined) return null;
  const attempts = await selectAttempts(db, id);
  return { ...row, tag: messageTag(row), isInDoubt: isInDoubt(attempts, attempts.length < attemptsRead) };
}

/** More in a row that were not sent are rare. */
const attemptsRead = 1000;

function selectAttempts(tx: Queryable, id: string): Promise<readonly AttemptEvents[]> {
  return tx.query<AttemptEvents>(sql`
    SELECT attempt_no AS "attemptNo", array_agg(DISTINCT event) AS events
    FROM dlq.message_history WHERE message_id = ${id}
    GROUP BY attempt_no ORDER BY attempt_no DESC LIMIT ${attemptsRead}`);
}

/** The first edit also keeps the original. */
async function writeVersion(
  tx: Queryable,
  deps: EditDeps,
  { id, actor, reason, changes, stored }: Edit & Readonly<{ stored: StoredChanges }>,
): Promise<EditedMessage> {
  const { targetTopic } = changes;
  const { key, value, headers } = stored;
  const headersJson = headers === undefined || headers === null ? null : JSON.stringify(headers);
  const [edited] = await tx.query<EditedMessage>(sql`
    WITH original AS (
      INSERT INTO dlq.message_versions
        (message_id, version, key, value, headers, target, actor, created_at, data_key, key_hmac, record_hmac,
         removed_parts)
      SELECT t.id, 0, t.message_key, ${recordValue}, t.headers, t.original_topic, 'ingest', t.created_at,
             t.data_key, t.key_hmac, t.record_hmac, t.removed_parts
      FROM ${live} t WHERE t.id = ${id} AND t.version = 0
    ), edited AS (
      INSERT INTO dlq.message_versions
        (message_id, version, key, value, headers, target, actor, reason, data_key, key_hmac, record_hmac,
         removed_parts)
      SELECT t.id, t.version + 1,
             ${key === undefined ? sql`t.message_key` : sql`${key}::bytea`},
             ${value === undefined ? recordValue : sql`${value}::bytea`},
             ${headers === undefined ? sql`t.headers` : sql`${headersJson}::jsonb`},
             ${targetTopic === undefined ? sql`t.original_topic` : sql`${targetTopic}::text`},
             ${actor}, ${reason}, ${stored.hashes}, ${stillRemoved(changes)}
      FROM ${live} t WHERE t.id = ${id}
      RETURNING message_id, version, key, value, headers, target, data_key, key_hmac, record_hmac, removed_parts
    )
    UPDATE ${live} t
    SET version = edited.version, message_key = edited.key, raw_value = edited.value, headers = edited.headers,
        original_topic = edited.target, payload = ${payloadOf(deps, stored)},
        data_key = edited.data_key, key_hmac = edited.key_hmac, record_hmac = edited.record_hmac,
        removed_parts = edited.removed_parts,
        unroutable = t.unroutable AND ${targetTopic === undefined},
        routed = t.routed AND ${targetTopic === undefined}, ${endLease}
    FROM edited WHERE t.id = edited.message_id
    RETURNING t.version, t.lease_epoch AS epoch`);
  if (edited === undefined) throw new Error(`the locked message ${id} was not found`);
  return edited;
}

/** What the edit gives again is whole. */
function stillRemoved(changes: Changes): Sql {
  const given = publishedParts.filter((part) => changes[part] !== undefined);
  return sql`NULLIF(ARRAY(SELECT unnest(t.removed_parts) EXCEPT SELECT unnest(${given}::text[])), '{}')`;
}

function payloadOf({ isJson }: EditDeps, { value, isSealed }: StoredChanges): Sql {
  if (isSealed) return sql`NULL`;
  if (value === undefined) return sql`t.payload`;
  return value !== null && isJson(value) ? sql`convert_from(edited.value, 'UTF8')::jsonb` : sql`NULL`;
}

function describeEdit(message: EditedState, { changes, maySendTwice }: Edit): string {
  const { targetTopic } = changes;
  const parts = (['key', 'value', 'headers'] as const).filter((part) => changes[part] !== undefined);
  const target = targetTopic === undefined ? [] : [`target from ${message.originalTopic} to ${targetTopic}`];
  const twice = message.isInDoubt && maySendTwice ? '; may be sent twice' : '';
  return `version ${message.version + 1}: ${[...parts, ...target].join(', ')}${twice}`;
}

/** Unlike a route, an edit is bound by `dlq.allowed_targets`. */
export function requireTarget(
  { isDeadLetterTopic, isAllowedTarget }: Pick<EditDeps, 'isDeadLetterTopic' | 'isAllowedTarget'>,
  topic: string,
): void {
  if (!isLegalTopic(topic)) throw wrongTarget(topic, 'is not the name of a topic to publish to');
  if (isDeadLetterTopic(topic)) throw wrongTarget(topic, 'is a dead-letter topic');
  if (!isAllowedTarget(topic))
    throw wrongTarget(topic, 'is not in dlq.allowed_targets; add it there, or route the message');
}

export async function explainRefusal(
  deps: Pick<EditDeps, 'findHead'>,
  id: string,
  { refusal, message }: Refused,
): Promise<AppError> {
  if (refusal === 'not_found' || message === null) {
    const head = await deps.findHead(id);
    if (head === null) return messageNotFound(id);
    return conflict(head.isArchived ? 'archived, reopen it first' : 'it was moved meanwhile; try again');
  }
  switch (refusal) {
    case 'being_retried':
      return conflict('a retry is running');
    case 'resolved':
      return conflict(`status=RESOLVED, retry_count=${message.retryCount}/${message.maxRetries}`);
    case 'changed':
      return staleTag('dlq', 'message', message.tag);
    case 'in_doubt':
      return conflict(
        'the outcome of its newest attempt is unknown, so the version before may have been sent; with may_send_twice it is edited nevertheless',
        { field: 'may_send_twice', reason: 'in_doubt', message: 'must be true: an attempt is in doubt' },
      );
    case 'without_value':
      return conflict('it was stored without a value; send one', {
        field: 'value',
        reason: 'required',
        message: 'is required: the message was stored without a value',
      });
    case 'too_many_versions':
      return conflict(`it has ${maxVersions} versions`);
  }
}

function conflict(why: string, detail?: AppError['details'][number]): AppError {
  return new AppError('SYS_DLQ_CONFLICT', 'conflict', `message cannot be edited: ${why}`, {
    details: detail === undefined ? [] : [detail],
  });
}
