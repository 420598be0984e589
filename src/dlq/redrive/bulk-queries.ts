import type { NameFilter } from '../../kernel/access/scope.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { isNamed } from '../../platform/postgres/is-named.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { isDue, isIncomplete, hasValue } from '../messages-table.ts';
import type { Keyset } from '../stored-message.ts';
import { orderKey } from './claim-messages.ts';

/** Messages match a topic by the original topic, or by the dead-letter topic that they were read from. */
export type MatchBy = 'original' | 'source';

/** Marks the start of a bulk call: rows touched or stored later are left out, so each is tried at most once. */
export type BulkStart = Readonly<{ epoch: bigint; at: string }>;

export async function startBulk(db: Queryable): Promise<BulkStart> {
  const rows = await db.query<BulkStart>(sql`
    SELECT nextval('platform.lease_epochs') AS epoch,
           to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS at`);
  return rows[0] ?? { epoch: 0n, at: '-infinity' };
}

/** Where due messages go: whether any matches by the original topic, and the targets of those read from the topic. */
export type DueTargets = Readonly<{ hasOwn: boolean; others: readonly string[] }>;

export async function findDueTargets(db: Queryable, topic: string, names: NameFilter): Promise<DueTargets> {
  const own = await db.query(sql`
    SELECT 1 FROM dlq.dlq_messages t WHERE ${inTopic(topic, 'original', names)} AND ${isDue} LIMIT 1`);
  const others = await db.query<{ topic: string }>(sql`
    SELECT DISTINCT t.original_topic AS topic FROM dlq.dlq_messages t
    WHERE ${inTopic(topic, 'source', names)} AND t.status = 'PENDING'`);
  return { hasOwn: own.length > 0, others: others.map((row) => row.topic) };
}

/** Whether a message, live or archived, or a partition that was ever read has this topic, as far as the caller may see. */
export async function isKnownTopic(db: Queryable, topic: string, names: NameFilter): Promise<boolean> {
  const isInScope = isNamed(sql`original_topic`, names);
  const rows = await db.query<{ is_known: boolean }>(sql`
    SELECT EXISTS (SELECT 1 FROM dlq.dlq_messages WHERE original_topic = ${topic} AND ${isInScope})
        OR EXISTS (SELECT 1 FROM dlq.dlq_messages WHERE source_topic = ${topic} AND ${isInScope})
        OR EXISTS (SELECT 1 FROM dlq.source_partitions WHERE topic = ${topic} AND ${isNamed(sql`topic`, names)})
        OR EXISTS (SELECT 1 FROM dlq.dlq_messages_archive WHERE original_topic = ${topic} AND ${isInScope})
        OR EXISTS (SELECT 1 FROM dlq.dlq_messages_archive WHERE source_topic = ${topic} AND ${isInScope}) AS is_known`);
  return rows[0]?.is_known === true;
}

/** Due messages that a bulk call has not touched, grouped by what may have excluded them. */
export type Untouched = Readonly<{
  by: MatchBy;
  target: string;
  unroutable: boolean;
  isRouted: boolean;
  hasValue: boolean;
  /** Parts of it were removed at ingest. */
  isIncomplete: boolean;
  /** A redrive that was started and has not ended has it. */
  isInRedrive: boolean;
  count: number;
}>;

export async function countUntouched(
  db: Queryable,
  { topic, names, since }: Pick<BulkFilter, 'topic' | 'names' | 'since'>,
): Promise<readonly Untouched[]> {
  const countBy = (by: MatchBy): Sql => sql`
    SELECT ${by} AS by, t.original_topic AS target, t.unroutable, t.routed AS "isRouted", ${hasValue} AS "hasValue",
           ${isIncomplete} AS "isIncomplete", ${isInRedrive} AS "isInRedrive", count(*)::float8 AS count
    FROM dlq.dlq_messages t
    WHERE ${inTopic(topic, by, names)} AND ${isDue} AND ${isUntouched(since)}
    GROUP BY t.original_topic, t.unroutable, t.routed, "hasValue", "isIncomplete", "isInRedrive"`;
  return db.query<Untouched>(sql`${countBy('original')} UNION ALL ${countBy('source')}`);
}

export type BulkFilter = Readonly<{
  topic: string;
  /** The original topics that the caller may retry. */
  names: NameFilter;
  by: MatchBy;
  since: BulkStart;
  /** A cursor, so that the scan does not pass over finished rows again and again. */
  after: Keyset | null;
  /** Leaves out rows not marked unroutable: their topic is a dead-letter topic without a route. */
  onlyUnroutable: boolean;
  excluded: Excluded;
}>;

/** What a bulk claim leaves out. */
export type Excluded = Readonly<{
  /** Topics that cannot be published to. */
  targets: readonly string[];
  /** Topics that are not allowed, unless an operator chose the topic. */
  notAllowed: readonly string[];
  /** Messages behind a refused one with the same key. */
  keys: readonly Readonly<{ topic: string; orderKey: Buffer }>[];
  /** Messages that were stored without their value. */
  valueless: boolean;
}>;

/** A condition that excludes nothing is not part of the statement. */
export function inBulkCall({ topic, names, by, since, after, onlyUnroutable, excluded }: BulkFilter): Sql {
  const { targets, notAllowed, keys, valueless } = excluded;
  const isAfter =
    after === null
      ? sql`true`
      : sql`(t.created_at, t.id) > (${after.createdAt}::timestamptz, ${after.id}::uuid)`;
  const hasTarget =
    targets.length === 0 ? sql`true` : sql`(t.unroutable OR t.original_topic <> ALL(${targets}::text[]))`;
  const isAllowed =
    notAllowed.length === 0
      ? sql`true`
      : sql`(t.unroutable OR t.routed OR t.original_topic <> ALL(${notAllowed}::text[]))`;
  const isKeyFree =
    keys.length === 0
      ? sql`true`
      : sql`(t.message_key IS NULL OR (t.original_topic::text, ${orderKey}) NOT IN (
          SELECT refused.topic, refused.key
          FROM unnest(${keys.map((key) => key.topic)}::text[],
                      ${keys.map((key) => key.orderKey)}::bytea[]) AS refused (topic, key)))`;
  const isTaken = sql`${isUntouched(since)} AND ${hasTarget} AND ${isAllowed} AND ${isKeyFree}
    AND ${valueless ? sql`(${hasValue})` : sql`true`} AND NOT ${isInRedrive}`;
  return sql`${inTopic(topic, by, names)} AND ${isAfter} AND ${onlyUnroutable ? sql`t.unroutable` : sql`true`}
    AND ${usually(isTaken)}`;
}

/**
 * The same condition, for a planner that expects it to be true. Left to its defaults it would expect so few rows that
 * it reads and sorts all that are left of a backlog for every batch, instead of the next ones in the order of an index.
 */
function usually(condition: Sql): Sql {
  return sql`NULLIF(${condition}, false) IS NOT NULL`;
}

/**
 * Waits in a redrive that was started and has not ended: its canary or its rate may be there to protect somebody. Items
 * are looked at only while there is such a redrive, and one by one: the planner must not read all of them for a hash.
 */
const isInRedrive: Sql = sql`(
  CASE WHEN (SELECT EXISTS (SELECT 1 FROM dlq.redrives r WHERE r.state IN ('running', 'paused', 'stopped')))
  THEN COALESCE((
    SELECT true FROM dlq.redrive_items o JOIN dlq.redrives r ON r.id = o.redrive_id
    WHERE o.message_id = t.id AND o.outcome IS NULL AND r.state IN ('running', 'paused', 'stopped')
    LIMIT 1), false)
  ELSE false END)`;

function inTopic(topic: string, by: MatchBy, names: NameFilter): Sql {
  const isInScope = isNamed(sql`t.original_topic`, names);
  return by === 'original'
    ? sql`t.original_topic = ${topic} AND ${isInScope}`
    : sql`t.source_topic = ${topic} AND t.original_topic <> ${topic} AND ${isInScope}`;
}

/**
 * A row with a creation time in the future was not stamped by this database's clock. It counts as older than the call;
 * otherwise it could not be retried before that time.
 */
function isUntouched({ epoch, at }: BulkStart): Sql {
  return sql`t.lease_epoch < ${epoch}
    AND (t.created_at <= ${at}::timestamptz OR t.created_at > clock_timestamp())`;
}
