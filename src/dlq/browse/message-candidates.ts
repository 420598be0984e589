import type { Queryable } from '../../platform/postgres/database.ts';
import { joinSql, sql, type Sql } from '../../platform/postgres/sql.ts';
import { statuses } from '../domain/message.ts';
import { likePattern } from '../../kernel/glob/like-pattern.ts';
import { compileGlobs } from '../../kernel/glob/match-glob.ts';
import {
  conditionsOf,
  isGlob,
  isWithin,
  keyHashes,
  tablesOf,
  type IndexedField,
  type MessageFilter,
  type MessageTables,
} from '../message-filter.ts';
import type { Keyset } from '../stored-message.ts';

/**
 * How a list finds its messages: one index reads candidates, newest first, and the conditions that it does not cover
 * are checked candidate by candidate. The most selective field of the filter chooses the index.
 */
export type Candidates = Readonly<{
  tables: MessageTables;
  /**
   * At most so many candidates before the position, unordered: `id`, `created_at`, `is_match` and these columns of the
   * message `t`. `is_match` is null if the message is gone.
   */
  read: (window: CandidateWindow, columns?: Sql) => Sql;
  /** `id` and `created_at` alone, unordered, of each range at most so many. */
  select: (limit: number, after: Keyset | null) => Sql;
  /** Conditions on the message `t` that are still to be checked. */
  rest: readonly Sql[];
  /** Words are among these conditions. */
  checksText: boolean;
  /** A statement with all candidates, for the planner's estimate of their number. */
  all: Sql;
  /** Rows of the index may belong to messages that are gone, or may not be there yet. */
  isFacets: boolean;
}>;

export type CandidateWindow = Readonly<{ limit: number; after: Keyset | null }>;

/** Topics of a glob that are read one by one; with more, every message is compared. */
const maxTopicRanges = 64;
const maxComparedTopics = 1000;

export async function findCandidates(db: Queryable, filter: MessageFilter): Promise<Candidates> {
  const { text, key, fingerprint, errorClass, consumerGroup, isUnroutable, topic, status } = filter;
  if (key !== undefined) return byKey(filter, key);
  if (text !== undefined && !(await isCommonText(db, filter, text))) return byText(filter, text);
  if (isUnroutable === true) return byTime(filter, ['isUnroutable'], sql`t.unroutable`);
  if (filter.hasEdit === true) return byTime(filter, ['hasEdit'], sql`t.version > 0`);
  if (fingerprint !== undefined) return byFingerprint(filter, fingerprint);
  const hasCause = errorClass !== undefined || consumerGroup !== undefined;
  if (hasCause && status !== undefined && (await areFew(db, filter, status)))
    return byStatuses(filter, status);
  if (errorClass !== undefined) return byFacet(filter, 'errorClass', sql`f.error_class = ${errorClass}`);
  if (consumerGroup !== undefined)
    return byFacet(filter, 'consumerGroup', sql`f.consumer_group = ${consumerGroup}`);
  const topics = topic === undefined ? null : await findTopics(db, filter, topic);
  if (topics !== null) return byTopics(filter, topics);
  if (status !== undefined && status.length < statuses.length) return byStatuses(filter, status);
  return byTime(filter, ['status'], sql`true`);
}

/** Fields whose filter reads what the indexer has written. */
export function readsFacets({ text, key, errorClass, consumerGroup }: MessageFilter): boolean {
  return [text, key, errorClass, consumerGroup].some((value) => value !== undefined);
}

function candidatesOf(
  filter: MessageFilter,
  covered: readonly IndexedField[],
  found: Pick<Candidates, 'select'> & Partial<Candidates>,
): Candidates {
  const { messages } = tablesOf(filter);
  const rest = conditionsOf(filter, new Set(covered));
  const isMatch = sql`COALESCE(${allOf(rest)}, false) AS is_match`;
  const needsMessage = rest.length > 0 || found.isFacets === true;
  return {
    tables: tablesOf(filter),
    // Lateral, and not merged because of its OFFSET: or a plan for many candidates may read all messages.
    read: ({ limit, after }, columns) => {
      const inOrder = sql`
        SELECT s.id, s.created_at FROM (${found.select(limit, after)}) AS s
        ORDER BY s.created_at DESC, s.id DESC
        LIMIT ${limit}`;
      return columns === undefined && !needsMessage
        ? sql`SELECT c.id, c.created_at, true AS is_match FROM (${inOrder}) AS c`
        : sql`
          SELECT c.id, c.created_at, m.* FROM (${inOrder}) AS c
          LEFT JOIN LATERAL (
            SELECT ${columns === undefined ? isMatch : sql`${isMatch}, ${columns}`}
            FROM ${messages} t WHERE t.id = c.id OFFSET 0
          ) AS m ON true`;
    },
    rest,
    checksText: filter.not?.text !== undefined || (filter.text !== undefined && !covered.includes('text')),
    all: sql`
      SELECT 1 FROM ${tablesOf(filter).messages} t
      WHERE ${allOf([...coveredConditions(filter, covered), isWithin(sql`t.created_at`, filter)])}`,
    isFacets: false,
    ...found,
  };
}

function coveredConditions(filter: MessageFilter, covered: readonly IndexedField[]): readonly Sql[] {
  const only = Object.fromEntries(covered.map((field) => [field, filter[field]]));
  return conditionsOf({ ...only, hashes: filter.hashes ?? null, isArchived: filter.isArchived === true });
}

function allOf(conditions: readonly Sql[]): Sql {
  return conditions.length === 0 ? sql`true` : joinSql(conditions, sql` AND `);
}

const newestFirst: Sql = sql`ORDER BY t.created_at DESC, t.id DESC`;

function isBefore(createdAt: Sql, id: Sql, after: Keyset | null): Sql {
  return after === null
    ? sql`true`
    : sql`(${createdAt}, ${id}) < (${after.createdAt}::timestamptz, ${after.id}::uuid)`;
}

/** The newest messages of one range of an index. */
function newest(
  filter: MessageFilter,
  where: Sql,
  { limit, after }: CandidateWindow,
  columns: Sql = sql`t.id, t.created_at`,
): Sql {
  return sql`
    SELECT ${columns} FROM ${tablesOf(filter).messages} t
    WHERE ${where} AND ${isWithin(sql`t.created_at`, filter)} AND ${isBefore(sql`t.created_at`, sql`t.id`, after)}
    ${newestFirst}
    LIMIT ${limit}`;
}

function byTime(filter: MessageFilter, covered: readonly IndexedField[], where: Sql): Candidates {
  const isMatch = sql`COALESCE(${allOf(conditionsOf(filter, new Set(covered)))}, false) AS is_match`;
  return candidatesOf(filter, covered, {
    select: (limit, after) => newest(filter, where, { limit, after }),
    // One range, already in order: its rows are read only once.
    read: (window, columns) =>
      newest(
        filter,
        where,
        window,
        sql`t.id, t.created_at, ${isMatch}${columns === undefined ? sql`` : sql`, ${columns}`}`,
      ),
  });
}

function byStatuses(filter: MessageFilter, some: readonly string[]): Candidates {
  return candidatesOf(filter, ['status'], {
    select: (limit, after) => sql`
      SELECT r.id, r.created_at FROM unnest(${some}::text[]) AS s (status)
      CROSS JOIN LATERAL (${newest(filter, sql`t.status = s.status`, { limit, after })}) AS r`,
  });
}

/** With more, the index of another field is read. */
const fewMessages = 1000;

/** So few messages have these statuses that all of them are checked in one step. */
async function areFew(db: Queryable, filter: MessageFilter, some: readonly string[]): Promise<boolean> {
  const [row] = await db.query<{ count: bigint }>(sql`
    SELECT count(*) AS count FROM (
      SELECT FROM ${tablesOf(filter).messages} t
      WHERE t.status = ANY(${some}::text[]) AND ${isWithin(sql`t.created_at`, filter)} LIMIT ${fewMessages + 1}
    ) AS found`);
  return (row?.count ?? 0n) <= BigInt(fewMessages);
}

function byFingerprint(filter: MessageFilter, fingerprint: string): Candidates {
  const where = sql`t.fingerprint = ${fingerprint} AND t.status = s.status`;
  return candidatesOf(filter, ['fingerprint', 'status'], {
    select: (limit, after) => sql`
      SELECT r.id, r.created_at FROM unnest(${filter.status ?? statuses}::text[]) AS s (status)
      CROSS JOIN LATERAL (${newest(filter, where, { limit, after })}) AS r`,
  });
}

type Topics = Readonly<{ original: readonly string[]; source: readonly string[] }>;

/** Two ranges per topic and status: a topic is the original or the dead-letter topic. */
function byTopics(filter: MessageFilter, { original, source }: Topics): Candidates {
  const { topic = '' } = filter;
  const isOther = isGlob(topic)
    ? sql`t.original_topic NOT LIKE ${likePattern(topic)}`
    : sql`t.original_topic <> ${topic}`;
  const ranges = (topics: readonly string[], where: Sql, limit: number, after: Keyset | null): Sql => sql`
    SELECT r.id, r.created_at
    FROM unnest(${topics}::text[]) AS w (topic) CROSS JOIN unnest(${filter.status ?? statuses}::text[]) AS s (status)
    CROSS JOIN LATERAL (${newest(filter, where, { limit, after })}) AS r`;
  return candidatesOf(filter, ['topic', 'status'], {
    select: (limit, after) => sql`
      ${ranges(original, sql`t.original_topic = w.topic AND t.status = s.status`, limit, after)}
      UNION ALL
      ${ranges(source, sql`t.source_topic = w.topic AND t.status = s.status AND ${isOther}`, limit, after)}`,
  });
}

/** The topics of a pattern; null if they are too many. */
async function findTopics(db: Queryable, filter: MessageFilter, topic: string): Promise<Topics | null> {
  if (!isGlob(topic)) return { original: [topic], source: [topic] };
  const { messages } = tablesOf(filter);
  const [all] = await db.query<Topics>(sql`
    SELECT ARRAY(${distinctTopics(messages, sql`original_topic`)}) AS original,
           ARRAY(${distinctTopics(messages, sql`source_topic`)}) AS source`);
  if (all === undefined || Math.max(all.original.length, all.source.length) > maxComparedTopics) return null;
  const isMatch = compileGlobs([topic]);
  const found = { original: all.original.filter(isMatch), source: all.source.filter(isMatch) };
  return found.original.length + found.source.length > maxTopicRanges ? null : found;
}

/** Jumps in the index from one topic to the next. */
function distinctTopics(messages: Sql, column: Sql): Sql {
  return sql`
    WITH RECURSIVE named (topic) AS (
      (SELECT t.${column} FROM ${messages} t WHERE t.${column} IS NOT NULL ORDER BY t.${column} LIMIT 1)
      UNION ALL
      SELECT (SELECT t.${column} FROM ${messages} t WHERE t.${column} > named.topic ORDER BY t.${column} LIMIT 1)
      FROM named WHERE named.topic IS NOT NULL
    )
    SELECT topic::text FROM named WHERE topic IS NOT NULL LIMIT ${maxComparedTopics + 1}`;
}

/** What the indexer has written, in the order of the list. */
function byFacet(filter: MessageFilter, field: IndexedField, where: Sql): Candidates {
  const { facets } = tablesOf(filter);
  return candidatesOf(filter, [field], {
    isFacets: true,
    all: sql`SELECT 1 FROM ${facets} f WHERE ${where} AND ${isWithin(sql`f.created_at`, filter)}`,
    select: (limit, after) => sql`
      SELECT f.message_id AS id, f.created_at FROM ${facets} f
      WHERE ${where} AND ${isWithin(sql`f.created_at`, filter)}
        AND ${isBefore(sql`f.created_at`, sql`f.message_id`, after)}
      ORDER BY f.created_at DESC, f.message_id DESC
      LIMIT ${limit}`,
  });
}

/** A range of the index for messages in the clear, and one for those that are encrypted. */
function byKey(filter: MessageFilter, key: string): Candidates {
  const ranges = keyHashes(key, filter).map((hash) =>
    byFacet(filter, 'key', sql`f.key_hash = ${hash}::bytea`),
  );
  const either = (statements: readonly Sql[]): Sql =>
    joinSql(
      statements.map((statement) => sql`(${statement})`),
      sql` UNION ALL `,
    );
  return candidatesOf(filter, ['key'], {
    isFacets: true,
    all: either(ranges.map(({ all }) => all)),
    select: (limit, after) => either(ranges.map(({ select }) => select(limit, after))),
  });
}

/** All messages with the words, unordered, as the index finds them: materialized, or the planner walks by time. */
function byText(filter: MessageFilter, text: string): Candidates {
  const { facets } = tablesOf(filter);
  const hasWords = sql`f.search @@ dlq.search_query(${text})`;
  return candidatesOf(filter, ['text'], {
    isFacets: true,
    all: sql`SELECT 1 FROM ${facets} f WHERE ${hasWords} AND ${isWithin(sql`f.created_at`, filter)}`,
    select: (limit, after) => sql`
      SELECT found.id, found.created_at FROM (
        WITH found AS MATERIALIZED (
          SELECT f.message_id AS id, f.created_at FROM ${facets} f WHERE ${hasWords}
        )
        SELECT id, created_at FROM found
        WHERE ${isWithin(sql`created_at`, filter)} AND ${isBefore(sql`created_at`, sql`id`, after)}
        ORDER BY created_at DESC, id DESC
        LIMIT ${limit}
      ) AS found`,
  });
}

const sampleSize = 1000;
const commonShare = 0.01;

/** Whether so many of the newest messages have the words that walking through all is faster than the index. */
async function isCommonText(db: Queryable, filter: MessageFilter, text: string): Promise<boolean> {
  const [hasWords = sql`false`] = conditionsOf({ text, isArchived: filter.isArchived === true });
  const [row] = await db.query<{ found: bigint; sampled: bigint }>(sql`
    WITH sampled AS MATERIALIZED (${newest(filter, sql`true`, { limit: sampleSize, after: null }, sql`t.id, ${hasWords} AS is_match`)})
    SELECT count(*) FILTER (WHERE is_match) AS found, count(*) AS sampled FROM sampled`);
  const { found = 0n, sampled = 0n } = row ?? {};
  return sampled >= BigInt(sampleSize) && Number(found) >= commonShare * sampleSize;
}
