import { createHash } from 'node:crypto';
import type { NameFilter } from '../kernel/access/scope.ts';
import { likePattern } from '../kernel/glob/like-pattern.ts';
import { invalidField } from '../platform/http/slice-input.ts';
import { isNamed } from '../platform/postgres/is-named.ts';
import { sql, type Sql } from '../platform/postgres/sql.ts';
import type { Status } from './domain/message.ts';
import type { LookupHashes } from './domain/payloads.ts';

/** Which messages are meant: those for which all fields hold. */
export type MessageFilter = Readonly<{
  /** The original or the dead-letter topic; with `*` or `?` a glob. */
  topic?: string;
  /** One of these. */
  status?: readonly Status[];
  fingerprint?: string;
  errorClass?: string;
  /** The whole key, as UTF-8. */
  key?: string;
  consumerGroup?: string;
  /** Stored at or after it. */
  since?: Date;
  /** Stored before it. */
  until?: Date;
  isUnroutable?: boolean;
  hasEdit?: boolean;
  isArchived?: boolean;
  /** All its words, in any order and case, in the error or the beginning of the value. */
  text?: string;
  /** How messages with the key are found if they are encrypted. */
  hashes?: LookupHashes | null;
  /** There may be encrypted messages, whose payloads are not searched. */
  hasEncrypted?: boolean;
  /** The original topics that the caller may see; by default all. */
  names?: NameFilter;
  /** What must not hold; of several values none. */
  not?: Excluded;
}>;

export type Excluded = Readonly<{
  topic?: readonly string[];
  status?: readonly Status[];
  fingerprint?: readonly string[];
  errorClass?: readonly string[];
  key?: readonly string[];
  consumerGroup?: readonly string[];
  text?: readonly string[];
}>;

/** Where messages of a filter are. Those that are archived have tables with the same columns. */
export type MessageTables = Readonly<{ messages: Sql; facets: Sql; isArchive: Sql }>;

const liveTables: MessageTables = {
  messages: sql`dlq.dlq_messages`,
  facets: sql`dlq.message_facets`,
  isArchive: sql`false`,
};
const archiveTables: MessageTables = {
  messages: sql`dlq.dlq_messages_archive`,
  facets: sql`dlq.message_facets_archive`,
  isArchive: sql`true`,
};

export function tablesOf({ isArchived }: MessageFilter): MessageTables {
  return isArchived === true ? archiveTables : liveTables;
}

/** What an index can find; the rest of a filter is checked message by message. */
export type IndexedField =
  | 'topic'
  | 'status'
  | 'fingerprint'
  | 'errorClass'
  | 'key'
  | 'consumerGroup'
  | 'isUnroutable'
  | 'hasEdit'
  | 'text';

/** The conditions on a message `t`, except those on fields that are `covered` and on the time. */
export function conditionsOf(
  filter: MessageFilter,
  covered: ReadonlySet<IndexedField> = new Set(),
): readonly Sql[] {
  const { topic, status, fingerprint, errorClass, key, consumerGroup, text, not = {} } = filter;
  const { isUnroutable, hasEdit, names = null } = filter;
  const { facets } = tablesOf(filter);
  const has = <Value>(field: IndexedField, value: Value | undefined, condition: (value: Value) => Sql) =>
    value === undefined || covered.has(field) ? [] : [condition(value)];
  return [
    ...(names === null ? [] : [isNamed(sql`t.original_topic`, names)]),
    ...has('topic', topic, hasTopic),
    ...has('status', status, (some) => sql`t.status = ANY(${some}::text[])`),
    ...has('fingerprint', fingerprint, (one) => sql`t.fingerprint = ${one}`),
    ...has('errorClass', errorClass, (one) => sql`t.error_class = ${one}`),
    ...has('key', key, (one) => hasKey(one, filter)),
    ...has('consumerGroup', consumerGroup, (one) => sql`t.consumer_group = ${one}`),
    ...has('isUnroutable', isUnroutable, (is) => (is ? sql`t.unroutable` : sql`NOT t.unroutable`)),
    ...has('hasEdit', hasEdit, (is) => (is ? sql`t.version > 0` : sql`t.version = 0`)),
    ...has('text', text, (words) => hasText(words, facets)),
    ...(not.topic ?? []).map((one) => sql`NOT COALESCE(${hasTopic(one)}, false)`),
    ...(not.text ?? []).map((words) => sql`NOT COALESCE(${hasText(words, facets)}, false)`),
    ...isNoneOf(sql`t.status`, not.status),
    ...isNoneOf(sql`t.fingerprint`, not.fingerprint),
    ...isNoneOf(sql`t.error_class`, not.errorClass),
    ...isNoneOf(sql`t.consumer_group`, not.consumerGroup),
    ...(not.key ?? []).map((one) => sql`NOT COALESCE(${hasKey(one, filter)}, false)`),
  ];
}

function hasKey(key: string, { hashes = null }: MessageFilter): Sql {
  const isKey = sql`t.message_key = convert_to(${key}, 'UTF8')`;
  return hashes === null ? isKey : sql`(${isKey} OR t.key_hmac = ${hashes.ofKey(Buffer.from(key))}::bytea)`;
}

/** The hashes by which the index finds a key. */
export function keyHashes(key: string, { hashes = null }: MessageFilter): readonly Buffer[] {
  const bytes = Buffer.from(key);
  const sha256 = createHash('sha256').update(bytes).digest();
  return hashes === null ? [sha256] : [sha256, hashes.ofKey(bytes)];
}

/** Also true where the column is null. */
function isNoneOf(column: Sql, values: readonly string[] | undefined): readonly Sql[] {
  return values === undefined ? [] : [sql`COALESCE(${column} <> ALL(${values}::text[]), true)`];
}

/** Conditions on the time at which a message was stored. */
export function isWithin(createdAt: Sql, { since, until }: MessageFilter): Sql {
  return sql`${since === undefined ? sql`true` : sql`${createdAt} >= ${since}::timestamptz`}
    AND ${until === undefined ? sql`true` : sql`${createdAt} < ${until}::timestamptz`}`;
}

/** Punctuation and symbols are not indexed: a text of these would find nothing. */
export function requireWords(field: string, text: string): void {
  if (!/[\p{L}\p{N}]/u.test(text.normalize('NFKC')))
    throw invalidField('dlq', field, 'no_words', 'must have a letter or a digit');
}

export function isGlob(topic: string): boolean {
  return /[*?]/.test(topic);
}

function hasTopic(topic: string): Sql {
  if (!isGlob(topic)) return sql`(t.original_topic = ${topic} OR t.source_topic = ${topic})`;
  const pattern = likePattern(topic);
  return sql`(t.original_topic LIKE ${pattern} OR t.source_topic LIKE ${pattern})`;
}

/** Of an encrypted message only the error. */
function searchedText(row: Sql): Sql {
  return sql`dlq.search_vector(${row}.error_class, ${row}.error_message, ${row}.payload,
    CASE WHEN ${row}.data_key IS NULL THEN ${row}.raw_value END)`;
}

/** A message that is not indexed yet is read itself, so that this is exact at any time. */
function hasText(words: string, facets: Sql): Sql {
  return sql`COALESCE(
    (SELECT f.search FROM ${facets} f WHERE f.message_id = t.id),
    ${searchedText(sql`t`)}) @@ dlq.search_query(${words})`;
}

/** All live messages with these words, by the index. Messages that are not indexed yet are read themselves. */
export function idsWithText(words: string): Sql {
  return sql`
    SELECT f.message_id FROM dlq.message_facets f WHERE f.search @@ dlq.search_query(${words})
    UNION ALL
    SELECT m.id FROM dlq.index_queue q CROSS JOIN unnest(q.message_ids) AS queued (id)
    JOIN dlq.dlq_messages m ON m.id = queued.id
    WHERE ${searchedText(sql`m`)} @@ dlq.search_query(${words})`;
}

/** When the oldest message that waits for the indexer was queued; now if none waits. */
export const indexedUntil: Sql = sql`COALESCE(LEAST(
  (SELECT q.queued_at FROM dlq.index_queue q WHERE NOT q.is_backfill ORDER BY q.queued_at, q.id LIMIT 1),
  (SELECT q.queued_at FROM dlq.index_queue q WHERE q.is_backfill ORDER BY q.queued_at, q.id LIMIT 1)
), clock_timestamp())`;
