import { sql, type Sql } from '../../platform/postgres/sql.ts';
import type { NewMessage } from '../domain/arrivals.ts';
import type { HeldPartition } from '../usecase/ports.ts';
import { storeHeaders } from './stored-headers.ts';

export type ArrivingOptions = Readonly<{
  maxRetries: number;
  makeId: () => string;
  /** Told after the commit. */
  onStored: (topic: string, ids: readonly string[]) => void;
}>;

/**
 * A batch of new messages as two parameters: the small fields of all rows as one JSON text, and the raw bytes
 * of all rows as one blob that the server cuts up. So no byte is escaped, nothing is sent twice (the payload
 * is made from the raw value on the server), and the statement is the same for any number of rows.
 */
export function arrivingRows(
  held: HeldPartition,
  arriving: readonly NewMessage[],
  options: ArrivingOptions,
): Readonly<{ ids: readonly string[]; columns: Sql; select: Sql }> {
  const bytes: Buffer[] = [];
  let at = 1;
  const place = (part: Buffer | null): readonly [number, number] | readonly [] => {
    if (part === null) return [];
    const begin = at;
    bytes.push(part);
    at += part.length;
    return [begin, part.length];
  };

  const rows = arriving.map(({ letter, status, retryCount, parentId }) => {
    const [keyAt, keyLength] = place(letter.record.key);
    const [valueAt, valueLength] = place(letter.record.value);
    const { headers } = letter.record;
    // Undefined fields are left out of the JSON and arrive as NULL.
    return {
      id: options.makeId(),
      source_offset: String(letter.record.offset),
      source_ms: String(letter.record.timestamp),
      key_at: keyAt,
      key_length: keyLength,
      value_at: valueAt,
      value_length: valueLength,
      is_json: letter.isJson,
      headers: headers.length === 0 ? undefined : storeHeaders(headers),
      original_topic: letter.originalTopic,
      unroutable: letter.unroutable,
      dialect: letter.dialect,
      error_message: letter.errorMessage,
      error_class: letter.errorClass ?? undefined,
      error_stack: letter.errorStack ?? undefined,
      consumer_group: letter.consumerGroup ?? undefined,
      original_partition: letter.originalPartition ?? undefined,
      original_offset: letter.originalOffset === null ? undefined : String(letter.originalOffset),
      original_ms: letter.originalTimestampMs === null ? undefined : String(letter.originalTimestampMs),
      fingerprint: letter.fingerprint ?? undefined,
      status,
      retry_count: retryCount,
      parent_id: parentId ?? undefined,
    };
  });

  const blob = Buffer.concat(bytes, at - 1);
  const value = sql`substring(blob.bytes FROM r.value_at FOR r.value_length)`;
  return {
    ids: rows.map(({ id }) => id),
    columns: sql`
      id, original_topic, error_message, retry_count, max_retries, payload, status, source_topic,
      source_topic_id, source_partition, source_offset, source_timestamp, message_key, raw_value, headers, dialect,
      error_class, error_stack, consumer_group, original_partition, original_offset, original_timestamp,
      fingerprint, unroutable, parent_id`,
    select: sql`
      SELECT r.id, r.original_topic, r.error_message, r.retry_count, ${options.maxRetries}::int,
             CASE WHEN r.is_json THEN convert_from(${value}, 'UTF8')::jsonb END, r.status, ${held.topic},
             ${held.topicId}::uuid, ${held.partition}::int, r.source_offset, ${fromMs(sql`r.source_ms`)},
             substring(blob.bytes FROM r.key_at FOR r.key_length), ${value}, r.headers, r.dialect,
             r.error_class, r.error_stack, r.consumer_group, r.original_partition, r.original_offset,
             ${fromMs(sql`r.original_ms`)}, r.fingerprint, r.unroutable, r.parent_id
      FROM (SELECT ${blob}::bytea AS bytes) AS blob,
           json_to_recordset(${JSON.stringify(rows)}::json) AS r (
             id uuid, source_offset bigint, source_ms bigint, key_at int, key_length int, value_at int,
             value_length int, is_json boolean, headers jsonb, original_topic text, unroutable boolean,
             dialect text, error_message text, error_class text, error_stack text, consumer_group text,
             original_partition int, original_offset bigint, original_ms bigint, fingerprint text, status text,
             retry_count int, parent_id uuid)`,
  };
}

/** Kafka's -1 for "no timestamp", and times that PostgreSQL cannot hold, are none. */
function fromMs(ms: Sql): Sql {
  return sql`CASE WHEN ${ms} BETWEEN 0 AND 253402300799999 THEN to_timestamp(${ms} / 1000.0) END`;
}
