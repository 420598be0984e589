import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Database } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import type { ApiClient } from './api-client.ts';
import { eventually } from './eventually.ts';

/** A message as the REST API shows it; the fields that tests look at. */
export type MessageView = Readonly<{
  id: string;
  original_topic: string;
  error_message: string;
  retry_count: number;
  max_retries: number;
  payload: unknown;
  status: 'PENDING' | 'RETRYING' | 'RESOLVED' | 'DEAD';
  created_at: string;
  updated_at: string;
  last_retry_at: string | null;
  source_topic: string | null;
  source_partition: number | null;
  source_offset: number | null;
  key: string | null;
  key_base64?: string;
  error_class: string | null;
  consumer_group: string | null;
  original_partition: number | null;
  original_offset: number | null;
  original_timestamp: string | null;
  dialect: string | null;
  unroutable: boolean;
  attempt_no: number;
  parent_id: string | null;
  resolution: string | null;
  archived: boolean;
  version: number;
  payload_omitted?: true;
}>;

export type ListView = Readonly<{
  messages: readonly MessageView[];
  pagination: Readonly<{
    total_count: number;
    page: number;
    page_size: number;
    has_next: boolean;
    next_cursor?: string | null;
  }>;
}>;

export type HistoryView = Readonly<{
  history: readonly Readonly<{
    event: string;
    actor: string;
    reason: string | null;
    status_from: string | null;
    status_to: string | null;
    retry_count: number;
    attempt_no: number;
    topic: string | null;
    partition: number | null;
    offset: number | null;
    detail: string | null;
    redrive_id: string | null;
    version: number | null;
  }>[];
}>;

export type StoredMessage = Readonly<{
  id?: string;
  topic?: string;
  error?: string;
  status?: MessageView['status'];
  retryCount?: number;
  maxRetries?: number;
  payload?: unknown;
  createdAt?: string;
}>;

/** Inserts the columns that a message has always had, as another program would; returns its id. */
export async function storeMessage(db: Database, message: StoredMessage = {}): Promise<string> {
  const { id = randomUUID(), topic = 'orders.events.v1', createdAt = null } = message;
  const { status = 'PENDING', retryCount = 0, maxRetries = 3, error = 'processing failed' } = message;
  const payload = JSON.stringify(message.payload ?? { order_id: '123' });
  await db.query(sql`
    INSERT INTO dlq.dlq_messages
      (id, original_topic, error_message, retry_count, max_retries, payload, status, created_at, updated_at)
    VALUES (${id}, ${topic}, ${error}, ${retryCount}, ${maxRetries}, ${payload}::jsonb, ${status},
            COALESCE(${createdAt}::timestamptz, clock_timestamp()),
            COALESCE(${createdAt}::timestamptz, clock_timestamp()))`);
  return id;
}

/** Moves every RESOLVED and DEAD message to the archive, whatever its age. */
/** An answer of retry-all. */
export type RetryAllView = Readonly<{
  retried: number;
  message: string;
  failed: number;
  skipped: number;
  excluded: number;
  remaining: number;
  exclusions: readonly Readonly<{ reason: string; topic: string; count: number }>[];
}>;

/** The part of it that tells what was left. */
export const nothingLeft = { failed: 0, skipped: 0, excluded: 0, remaining: 0, exclusions: [] } as const;

export type StoredRecord = Readonly<{ key: string | null; value: string | Buffer }>;

/** Inserts messages as ingest would, in this order and with their raw bytes, a millisecond apart. */
export async function storeRecords(
  db: Database,
  topic: string,
  records: readonly StoredRecord[],
): Promise<void> {
  const keys = records.map(({ key }) => (key === null ? null : Buffer.from(key)));
  const values = records.map(({ value }) => Buffer.from(value));
  await db.query(sql`
    INSERT INTO dlq.dlq_messages
      (original_topic, error_message, source_topic, message_key, raw_value, created_at)
    SELECT ${topic}, 'processing failed', ${`${topic}.dlq`}, key, value,
           clock_timestamp() - interval '1 hour' + place * interval '1 millisecond'
    FROM unnest(${keys}::bytea[], ${values}::bytea[]) WITH ORDINALITY AS new (key, value, place)`);
}

export async function archiveEverything(db: Database): Promise<void> {
  await db.call(sql`CALL dlq.archive_old_dlq_messages(-1)`);
}

/** The messages of a topic once it has this many, in the order in which they were stored. */
export async function arrivedMessages(
  api: ApiClient,
  topic: string,
  count: number,
): Promise<readonly MessageView[]> {
  return eventually(async () => {
    const { body } = await api.get<ListView>(`/api/v1/dlq/${topic}?page_size=100`);
    assert.equal(body.pagination.total_count, count);
    return body.messages.toReversed();
  });
}

export async function showMessage(api: ApiClient, id: string): Promise<MessageView> {
  const { status, body, text } = await api.get<MessageView>(`/api/v1/dlq/messages/${id}`);
  assert.equal(status, 200, text);
  return body;
}

/** The message once it has this status. */
export async function messageInStatus(
  api: ApiClient,
  id: string,
  status: MessageView['status'],
): Promise<MessageView> {
  return eventually(async () => {
    const message = await showMessage(api, id);
    assert.equal(message.status, status);
    return message;
  });
}

export async function historyOf(api: ApiClient, id: string): Promise<HistoryView['history']> {
  const { status, body, text } = await api.get<HistoryView>(`/api/v1/dlq/messages/${id}/history`);
  assert.equal(status, 200, text);
  return body.history;
}
