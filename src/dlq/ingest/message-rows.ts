import { sql, type Sql } from '../../platform/postgres/sql.ts';
import type { NewMessage } from '../domain/arrivals.ts';
import type { DeadLetter } from '../domain/dead-letter.ts';
import type { Sealer } from '../domain/payloads.ts';
import { recordSha256 } from '../domain/record-sha256.ts';
import { storeHeaders } from '../stored-headers.ts';
import type { LeasedPartition } from './partitions-table.ts';
import { stageBlob, type StagedBlob } from './staged-blob.ts';

export type RowOptions = Readonly<{
  maxRetries: number;
  makeId: () => string;
  /** Null for a message that is stored in the clear. */
  sealerFor?: (letter: DeadLetter) => Sealer | null;
}>;

export type MessageRows = Readonly<{
  ids: readonly string[];
  columns: Sql;
  select: Sql;
  staging: StagedBlob['staging'];
}>;

/**
 * New messages as two parameters: the small fields of all rows as one JSON text, and the raw bytes of all rows as one
 * blob that the server splits. So no byte is escaped, none is sent twice (the server makes the payload from the raw
 * value), and the statement is the same for any number of rows.
 */
export function messageRows(
  leased: LeasedPartition,
  messages: readonly NewMessage[],
  { maxRetries, makeId, sealerFor = () => null }: RowOptions,
): MessageRows {
  const blob = createBlob();
  const rows = messages.map((message) => fieldsOf(message, makeId(), blob, sealerFor(message.letter)));
  const { table, staging } = stageBlob(blob.parts, makeId);
  const value = sql`substring(blob.bytes FROM r.value_at FOR r.value_length)`;
  return {
    ids: rows.map(({ id }) => id),
    staging,
    columns: sql`
      id, original_topic, error_message, retry_count, max_retries, payload, status, source_topic,
      source_topic_id, source_partition, source_offset, source_timestamp, message_key, raw_value, headers, dialect,
      error_class, error_stack, consumer_group, original_partition, original_offset, original_timestamp,
      fingerprint, unroutable, parent_id, source_compression, data_key, key_hmac, record_hmac,
      removed_parts`,
    select: sql`
      SELECT r.id, r.original_topic, r.error_message, r.retry_count, ${maxRetries}::int,
             CASE WHEN r.is_json THEN convert_from(${value}, 'UTF8')::jsonb END, r.status, ${leased.topic},
             ${leased.topicId}::uuid, ${leased.partition}::int, r.source_offset, ${fromMs(sql`r.source_ms`)},
             substring(blob.bytes FROM r.key_at FOR r.key_length), ${value}, r.headers, r.dialect,
             r.error_class, r.error_stack, r.consumer_group, r.original_partition, r.original_offset,
             ${fromMs(sql`r.original_ms`)}, r.fingerprint, r.unroutable, r.parent_id,
             r.source_compression, r.data_key, r.key_hmac, r.record_hmac, r.removed_parts
      FROM ${table} AS blob,
           json_to_recordset(${JSON.stringify(rows)}::json) AS r (
             id uuid, source_offset bigint, source_ms bigint, key_at int, key_length int, value_at int,
             value_length int, is_json boolean, headers jsonb, original_topic text, unroutable boolean,
             dialect text, error_message text, error_class text, error_stack text, consumer_group text,
             original_partition int, original_offset bigint, original_ms bigint, fingerprint text, status text,
             retry_count int, parent_id uuid, source_compression text, data_key int, key_hmac bytea, record_hmac bytea,
             removed_parts text[])`,
  };
}

type Blob = Readonly<{
  parts: readonly Buffer[];
  /** Appends bytes; returns their position (the first is 1) and length, or nothing for null. */
  append(part: Buffer | null): readonly [number, number] | readonly [];
}>;

function createBlob(): Blob {
  const parts: Buffer[] = [];
  let end = 1;
  return {
    parts,
    append(part) {
      if (part === null) return [];
      const begin = end;
      parts.push(part);
      end += part.length;
      return [begin, part.length];
    },
  };
}

/** Undefined fields are not in the JSON and become NULL. */
function fieldsOf(
  { letter, status, retryCount, parentId }: NewMessage,
  id: string,
  blob: Blob,
  sealer: Sealer | null,
) {
  const { record } = letter;
  const clear = {
    key: record.key,
    value: record.value,
    headers: record.headers.length === 0 ? null : storeHeaders(record.headers),
    stack: letter.errorStack,
  };
  const { key, value, headers, stack } = sealer?.seal(id, clear) ?? clear;
  const [keyAt, keyLength] = blob.append(key);
  const [valueAt, valueLength] = blob.append(value);
  return {
    id,
    source_offset: String(record.offset),
    source_ms: String(record.timestamp),
    key_at: keyAt,
    key_length: keyLength,
    value_at: valueAt,
    value_length: valueLength,
    is_json: letter.isJson && sealer === null,
    headers: headers ?? undefined,
    original_topic: letter.originalTopic,
    unroutable: letter.unroutable,
    dialect: letter.dialect,
    error_message: letter.errorMessage,
    error_class: letter.errorClass ?? undefined,
    error_stack: stack ?? undefined,
    consumer_group: letter.consumerGroup ?? undefined,
    original_partition: letter.originalPartition ?? undefined,
    original_offset: letter.originalOffset === null ? undefined : String(letter.originalOffset),
    original_ms: letter.originalTimestampMs === null ? undefined : String(letter.originalTimestampMs),
    fingerprint: letter.fingerprint ?? undefined,
    status,
    retry_count: retryCount,
    parent_id: parentId ?? undefined,
    source_compression: record.compression,
    removed_parts: letter.removed?.parts,
    ...(sealer === null ? {} : hashesOf(sealer, record)),
  };
}

/** Computed here: the database must not see what they are made of. */
function hashesOf(sealer: Sealer, { key, value }: DeadLetter['record']) {
  return {
    data_key: sealer.keyId,
    key_hmac: key === null ? undefined : `\\x${sealer.ofKey(key).toString('hex')}`,
    record_hmac: `\\x${sealer.ofRecord(recordSha256(key, value)).toString('hex')}`,
  };
}

/** NULL for Kafka's -1 ("no timestamp") and for times that PostgreSQL cannot store. */
function fromMs(ms: Sql): Sql {
  return sql`CASE WHEN ${ms} BETWEEN 0 AND 253402300799999 THEN to_timestamp(${ms} / 1000.0) END`;
}
