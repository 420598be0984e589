import type { Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { isGlob, type MessageFilter } from '../message-filter.ts';
import type { Candidates } from './message-candidates.ts';

export type Count = Readonly<{ total: number; isEstimate: boolean }>;

/** Above this number the total is an estimate: an exact count would be too slow. */
export const exactCountLimit = 10_000;
/** To look for words in a message takes longer than to compare a column. */
const checkedTexts = 2000;

/**
 * Counts up to the limit. Beyond it, the matches among the newest candidates are scaled to all candidates, whose number
 * is estimated.
 */
export async function countMessages(
  db: Queryable,
  filter: MessageFilter,
  candidates: Candidates,
): Promise<Count> {
  const { read, select, rest, checksText } = candidates;
  const limit = checksText ? checkedTexts : exactCountLimit + 1;
  const counted =
    rest.length === 0
      ? sql`
      SELECT count(*) AS scanned, count(*) AS found FROM (
        SELECT 1 FROM (${select(limit, null)}) AS found LIMIT ${limit}
      ) AS counted`
      : sql`
      SELECT count(*) AS scanned, count(*) FILTER (WHERE is_match) AS found
      FROM (${read({ limit, after: null })}) AS candidates`;
  const [row] = await db.query<{ scanned: bigint; found: bigint }>(counted);
  const [scanned, found] = [Number(row?.scanned ?? 0n), Number(row?.found ?? 0n)];
  if (scanned < limit) return { total: found, isEstimate: false };
  const all = await estimateCandidates(db, filter, candidates);
  return { total: Math.max(Math.round((all * found) / scanned), found), isEstimate: true };
}

type Plan = readonly Readonly<{ Plan: Readonly<{ 'Plan Rows': number }> }>[];

async function estimateCandidates(
  db: Queryable,
  filter: MessageFilter,
  { all, isFacets }: Candidates,
): Promise<number> {
  const { topic, since, until, isArchived, isUnroutable, hasEdit, fingerprint } = filter;
  const isCounted =
    !isFacets &&
    isArchived !== true &&
    [since, until, isUnroutable, hasEdit, fingerprint].every((value) => value === undefined) &&
    !(topic !== undefined && isGlob(topic));
  if (isCounted) return addCounts(db, filter);
  const rows = await db.query<{ 'QUERY PLAN': Plan }>(sql`EXPLAIN (FORMAT JSON) ${all}`);
  return rows[0]?.['QUERY PLAN'][0]?.Plan['Plan Rows'] ?? 0;
}

/**
 * Adds up the running counts, which are kept by original topic. For a dead-letter topic it samples rows to find its
 * original topics, so the result is too high if one of those has several dead-letter topics.
 */
async function addCounts(db: Queryable, { topic, status }: MessageFilter): Promise<number> {
  const ofTopic: Sql =
    topic === undefined
      ? sql`true`
      : sql`original_topic IN (
          SELECT ${topic} UNION SELECT original_topic FROM (
            SELECT t.original_topic FROM dlq.dlq_messages t WHERE t.source_topic = ${topic}
            ORDER BY t.status, t.created_at, t.id LIMIT 1000
          ) AS sampled)`;
  const ofStatus: Sql = status === undefined ? sql`true` : sql`status = ANY(${status}::text[])`;
  const rows = await db.query<{ count: bigint }>(sql`
    SELECT COALESCE(sum(messages), 0)::bigint AS count FROM dlq.topic_counts WHERE ${ofTopic} AND ${ofStatus}`);
  return Number(rows[0]?.count ?? 0n);
}
