import type { NameFilter } from '../../../kernel/access/scope.ts';
import { listLink } from '../../../kernel/inbox/console-link.ts';
import type { InboxGroup, InboxSample } from '../../../kernel/inbox/inbox-group.ts';
import type { Queryable } from '../../../platform/postgres/database.ts';
import { isNamed } from '../../../platform/postgres/is-named.ts';
import { sql, type Sql } from '../../../platform/postgres/sql.ts';
import { trendOf } from '../../domain/group-badges.ts';
import { dateOrNull, epochMs } from '../../instant.ts';

/** More groups than these are not read; those with the most messages come first. */
const maxMessageGroups = 3000;
/** So many messages without a target are counted. */
const countedUnroutable = 10_000;
const titleLength = 500;

type GroupRow = Readonly<{
  fingerprint: string;
  topic: string;
  count: number;
  title: string | null;
  consumer_group: string | null;
  oldest_at: number | null;
  newest_at: number | null;
  first_at: number | null;
  this_hour: number;
  last_hour: number;
  before: number;
}>;

/**
 * Messages that wait for a decision, by fingerprint and topic. Their numbers come from the running counts; of the
 * messages themselves only the oldest and the newest are looked up.
 */
export async function listMessageGroups(
  db: Queryable,
  names: NameFilter,
): Promise<Readonly<{ groups: readonly InboxGroup[]; isPartial: boolean }>> {
  const rows = await db.query<GroupRow>(messageGroups(names));
  return {
    groups: rows.slice(0, maxMessageGroups).map(groupOf),
    isPartial: rows.length > maxMessageGroups,
  };
}

export function messageGroups(names: NameFilter): Sql {
  return sql`
    WITH unroutable AS MATERIALIZED (
      SELECT t.fingerprint, t.original_topic AS topic, count(*) AS messages
      FROM (${unroutableMessages(names)}) AS t GROUP BY 1, 2
    ), open AS MATERIALIZED (
      SELECT g.fingerprint, g.original_topic AS topic, sum(g.messages) - COALESCE(max(u.messages), 0) AS messages,
             sum(g.messages) FILTER (WHERE g.status = 'PENDING') > 0 AS has_pending,
             sum(g.messages) FILTER (WHERE g.status = 'DEAD') > 0 AS has_dead,
             max(g.consumer_group) AS consumer_group,
             COALESCE(sum(g.arrived) FILTER (WHERE g.hour >= now.hour), 0) AS this_hour,
             COALESCE(sum(g.arrived) FILTER (WHERE g.hour = now.hour - interval '1 hour'), 0) AS last_hour,
             COALESCE(sum(g.arrived) FILTER (
               WHERE g.hour < now.hour - interval '1 hour' AND g.hour >= now.hour - interval '23 hours'), 0) AS before
      FROM (SELECT date_trunc('hour', clock_timestamp(), 'UTC') AS hour) AS now
      CROSS JOIN dlq.group_figures g
      LEFT JOIN unroutable u ON u.fingerprint = g.fingerprint AND u.topic = g.original_topic
      WHERE g.status IN ('PENDING', 'DEAD') AND ${isNamed(sql`g.original_topic`, names)}
      GROUP BY g.fingerprint, g.original_topic
      HAVING sum(g.messages) > COALESCE(max(u.messages), 0)
      ORDER BY messages DESC, g.fingerprint, g.original_topic
      LIMIT ${maxMessageGroups + 1}
    )
    SELECT open.fingerprint, open.topic, open.messages::float8 AS count, NULLIF(open.consumer_group, '') AS consumer_group,
           COALESCE(f.template, newest.error) AS title, ${epochMs(sql`oldest.at`)} AS oldest_at,
           ${epochMs(sql`newest.at`)} AS newest_at, ${epochMs(sql`f.first_at`)} AS first_at,
           open.this_hour::float8 AS this_hour, open.last_hour::float8 AS last_hour, open.before::float8 AS before
    FROM open
    LEFT JOIN dlq.fingerprints f ON f.fingerprint = open.fingerprint
    CROSS JOIN LATERAL (
      SELECT LEAST(CASE WHEN open.has_pending THEN ${edge('PENDING', sql`ASC`)} END,
                   CASE WHEN open.has_dead THEN ${edge('DEAD', sql`ASC`)} END) AS at
    ) AS oldest
    CROSS JOIN LATERAL (
      SELECT GREATEST(CASE WHEN open.has_pending THEN ${edge('PENDING', sql`DESC`)} END,
                      CASE WHEN open.has_dead THEN ${edge('DEAD', sql`DESC`)} END) AS at,
             CASE WHEN f.template IS NULL THEN ${newestError} END AS error
    ) AS newest`;
}

/** How far into a fingerprint's messages those of one topic are looked for. */
const lookedThrough = 2000;

/**
 * When the first message of the group by time was stored. Most fingerprints have one topic, so it is the first of the
 * index. Where many messages of other topics come before, the answer is the time of the last one that was read.
 */
function edge(status: 'PENDING' | 'DEAD', direction: Sql): Sql {
  const firstOf = (limit: number): Sql => sql`
    SELECT t.created_at, t.original_topic FROM dlq.dlq_messages t
    WHERE t.fingerprint = open.fingerprint AND t.status = ${status}
    ORDER BY t.created_at ${direction}, t.id ${direction} LIMIT ${limit}`;
  return sql`COALESCE(
    (SELECT one.created_at FROM (${firstOf(1)}) AS one WHERE one.original_topic = open.topic),
    (SELECT COALESCE((array_agg(looked.created_at) FILTER (WHERE looked.original_topic = open.topic))[1],
                     (array_agg(looked.created_at))[count(*)::int])
     FROM (${firstOf(lookedThrough)}) AS looked))`;
}

/** Only of groups without a template: of fingerprints that were not made by Redrive. */
const newestError: Sql = sql`(
  SELECT left(t.error_message, ${titleLength}) FROM dlq.dlq_messages t
  WHERE t.fingerprint = open.fingerprint AND t.status = CASE WHEN open.has_pending THEN 'PENDING' ELSE 'DEAD' END
    AND t.original_topic = open.topic
  ORDER BY t.created_at DESC, t.id DESC LIMIT 1)`;

function unroutableMessages(names: NameFilter): Sql {
  return sql`
    SELECT t.id, t.fingerprint, t.original_topic, t.created_at FROM dlq.dlq_messages t
    WHERE t.unroutable AND t.status IN ('PENDING', 'DEAD') AND ${isNamed(sql`t.original_topic`, names)}
    ORDER BY t.created_at DESC, t.id DESC LIMIT ${countedUnroutable}`;
}

function groupOf(row: GroupRow): InboxGroup {
  const { fingerprint, topic } = row;
  const recent = Math.max(row.this_hour, row.last_hour);
  return {
    kind: 'messages',
    slice: 'dlq',
    key: [fingerprint, topic],
    title: row.title ?? fingerprint,
    place: {
      topic,
      fingerprint,
      ...(row.consumer_group === null ? {} : { consumer_group: row.consumer_group }),
    },
    names: { topics: [topic] },
    count: row.count,
    oldestAt: dateOrNull(row.oldest_at),
    newestAt: dateOrNull(row.newest_at),
    firstAt: dateOrNull(row.first_at),
    arrivals: { recent, minutes: 60, usual: row.before / 22 },
    danger: null,
    verb: { action: 'plan_redrive', permission: 'dlq:redrives:plan' },
    link: listLink('/dlq/redrives/new', { fingerprint, topic, status: 'PENDING,DEAD' }),
  };
}

/** Messages without a target, by the topic that they came from: one rule routes them. */
export async function listUnroutable(db: Queryable, names: NameFilter): Promise<readonly InboxGroup[]> {
  const rows = await db.query<Readonly<{ topic: string; count: bigint; oldest: number; newest: number }>>(sql`
    SELECT t.original_topic AS topic, count(*) AS count, ${epochMs(sql`min(t.created_at)`)} AS oldest,
           ${epochMs(sql`max(t.created_at)`)} AS newest
    FROM (${unroutableMessages(names)}) AS t
    GROUP BY t.original_topic ORDER BY count DESC, t.original_topic LIMIT ${maxMessageGroups}`);
  return rows.map(({ topic, count, oldest, newest }) => ({
    kind: 'unroutable',
    slice: 'dlq',
    key: [topic],
    title: `no original topic is known for ${topic}`,
    place: { topic },
    names: { topics: [topic] },
    count: Number(count),
    oldestAt: dateOrNull(oldest),
    newestAt: dateOrNull(newest),
    firstAt: null,
    arrivals: null,
    danger: null,
    verb: { action: 'route', permission: 'dlq:messages:route' },
    link: listLink('/dlq/messages', { is: 'unroutable', topic }),
  }));
}

/** Of groups of messages; null for the others. */
export async function messageTrends(
  db: Queryable,
  groups: readonly InboxGroup[],
): Promise<readonly (readonly number[] | null)[]> {
  const asked = groups.map(({ kind, key: [fingerprint, topic] }, n) => ({ n, kind, fingerprint, topic }));
  const messages = asked.filter(({ kind }) => kind === 'messages');
  const rows = await db.query<Readonly<{ n: number; age: number; arrived: number }>>(sql`
    SELECT asked.n,
           (date_part('epoch', date_trunc('hour', clock_timestamp(), 'UTC') - g.hour) / 3600)::int AS age,
           sum(g.arrived)::float8 AS arrived
    FROM unnest(${messages.map(({ n }) => n)}::int[], ${messages.map(({ fingerprint }) => fingerprint)}::text[],
                ${messages.map(({ topic }) => topic)}::text[]) AS asked (n, fingerprint, topic)
    JOIN dlq.group_figures g ON g.fingerprint = asked.fingerprint AND g.original_topic = asked.topic
    WHERE g.hour > clock_timestamp() - interval '25 hours' AND g.arrived <> 0
    GROUP BY 1, 2`);
  const hours = Map.groupBy(rows, ({ n }) => n);
  return asked.map(({ n, kind }) =>
    kind === 'messages' ? trendOf((hours.get(n) ?? []).map((row) => ({ ...row, opened: 0 }))) : null,
  );
}

/** The newest messages of a group. */
export async function messageSamples(
  db: Queryable,
  { kind, key: [first = '', topic = ''] }: InboxGroup,
  limit: number,
): Promise<readonly InboxSample[]> {
  const among =
    kind === 'messages'
      ? sql`t.fingerprint = ${first} AND t.original_topic = ${topic} AND NOT t.unroutable`
      : sql`t.unroutable AND t.original_topic = ${first}`;
  const rows = await db.query<Readonly<{ id: string; text: string }>>(sql`
    SELECT t.id, left(t.error_message, ${titleLength}) AS text FROM dlq.dlq_messages t
    WHERE ${among} AND t.status IN ('PENDING', 'DEAD')
    ORDER BY t.created_at DESC, t.id DESC LIMIT ${limit}`);
  return rows.map(({ id, text }) => ({ id, text, link: `/dlq/messages/${id}` }));
}
