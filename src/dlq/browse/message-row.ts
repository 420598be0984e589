import { sql, type Sql } from '../../platform/postgres/sql.ts';
import type { RemovablePart } from '../domain/dead-letter.ts';
import type { Status } from '../domain/message.ts';
import type { Payloads, UnreadableCode } from '../domain/payloads.ts';
import { dateOrNull, epochMs, exactInstant } from '../instant.ts';
import type { Message } from '../stored-message.ts';

/** All columns but the texts and bytes, which lists cut or omit. */
export const messageColumns: Sql = sql`
  t.id, t.original_topic, t.retry_count, t.max_retries, t.status, ${epochMs(sql`t.created_at`)} AS created_at, ${epochMs(sql`t.updated_at`)} AS updated_at,
  ${epochMs(sql`t.last_retry_at`)} AS last_retry_at, ${exactInstant(sql`t.created_at`)} AS created_at_exact, t.source_topic, t.source_partition, t.source_offset,
  t.dialect, t.error_class, t.consumer_group, t.original_partition,
  t.original_offset, ${epochMs(sql`t.original_timestamp`)} AS original_timestamp, t.fingerprint, t.unroutable, t.routed,
  t.parent_id, t.resolution, t.attempt_no, t.version, t.data_key, t.removed_parts, t.lease_epoch, ${epochMs(sql`t.next_attempt_at`)} AS next_attempt_at, t.retry_policy`;

export type MessageRow = {
  id: string;
  original_topic: string;
  error_message: string;
  retry_count: number;
  max_retries: number;
  payload_text: string | null;
  has_payload: boolean;
  /** Only in lists that show the beginning of the value. */
  value_bytes?: bigint | null;
  value_start?: Buffer | null;
  /** Of an encrypted message the value, if it is not too large. */
  sealed_value: Buffer | null;
  is_key_omitted: boolean;
  status: Status;
  created_at: number;
  created_at_exact: string;
  updated_at: number;
  last_retry_at: number | null;
  source_topic: string | null;
  source_partition: number | null;
  source_offset: bigint | null;
  message_key: Buffer | null;
  dialect: string | null;
  error_class: string | null;
  error_stack: string | null;
  consumer_group: string | null;
  original_partition: number | null;
  original_offset: bigint | null;
  original_timestamp: number | null;
  fingerprint: string | null;
  unroutable: boolean;
  routed: boolean;
  parent_id: string | null;
  resolution: string | null;
  attempt_no: number;
  next_attempt_at: number | null;
  retry_policy: string | null;
  version: number;
  data_key: number | null;
  removed_parts: readonly RemovablePart[] | null;
  lease_epoch: bigint;
  is_archived: boolean;
};

/** Decrypts what is encrypted. A message that cannot be decrypted is shown without its record. */
export async function messagesOf(
  payloads: Payloads,
  rows: readonly MessageRow[],
): Promise<readonly Message[]> {
  const opened = await payloads.open(
    rows.map((row) => ({
      id: row.id,
      isSealed: row.data_key !== null,
      parts: { key: row.message_key, value: row.sealed_value, stack: row.error_stack },
    })),
  );
  return rows.map((row, i) => {
    const one = opened[i];
    if (row.data_key === null || one === undefined) return messageOf(row);
    if (one.error !== null) {
      const hidden = { message_key: null, error_stack: null, has_payload: false, is_key_omitted: false };
      const value = row.value_bytes === undefined ? {} : { value_bytes: null, value_start: null };
      return { ...messageOf({ ...row, ...hidden, ...value }), unreadable: one.error.code as UnreadableCode };
    }
    const { key, value, stack } = one.parts;
    const shown = { message_key: key, error_stack: stack };
    if (row.value_bytes !== undefined)
      return messageOf({ ...row, ...shown, value_start: value?.subarray(0, previewBytes) ?? null });
    const payload = value === null ? null : payloads.jsonOf(value);
    return messageOf({
      ...row,
      ...shown,
      payload_text: payload,
      // Whether a value that was not read is JSON is not known.
      has_payload: value === null ? row.has_payload : payload !== null,
    });
  });
}

/** How much of a value a list shows. */
export const previewBytes = 512;

function messageOf(row: MessageRow): Message {
  return {
    id: row.id,
    originalTopic: row.original_topic,
    errorMessage: row.error_message,
    retryCount: row.retry_count,
    maxRetries: row.max_retries,
    payloadText: row.payload_text,
    isPayloadOmitted: row.has_payload && row.payload_text === null,
    ...(row.value_bytes === undefined
      ? {}
      : { value: { bytes: row.value_bytes, start: row.value_start ?? null } }),
    status: row.status,
    createdAt: new Date(row.created_at),
    createdAtExact: row.created_at_exact,
    updatedAt: new Date(row.updated_at),
    lastRetryAt: dateOrNull(row.last_retry_at),
    sourceTopic: row.source_topic,
    sourcePartition: row.source_partition,
    sourceOffset: row.source_offset,
    key: row.message_key,
    isKeyOmitted: row.is_key_omitted,
    dialect: row.dialect,
    errorClass: row.error_class,
    errorStack: row.error_stack,
    consumerGroup: row.consumer_group,
    originalPartition: row.original_partition,
    originalOffset: row.original_offset,
    originalTimestamp: dateOrNull(row.original_timestamp),
    fingerprint: row.fingerprint,
    unroutable: row.unroutable,
    isRouted: row.routed,
    parentId: row.parent_id,
    resolution: row.resolution,
    attemptNo: row.attempt_no,
    nextAttemptAt: dateOrNull(row.next_attempt_at),
    retryPolicy: row.retry_policy,
    version: row.version,
    epoch: row.lease_epoch,
    isArchived: row.is_archived,
    isSealed: row.data_key !== null,
    unreadable: null,
    removedParts: row.removed_parts,
  };
}
