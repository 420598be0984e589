import type { NameFilter } from '../../kernel/access/scope.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { isNamed } from '../../platform/postgres/is-named.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { badgesOf, trendOf, type Badge, type GroupHour } from '../domain/group-badges.ts';
import type { Status } from '../domain/message.ts';
import { dateOrNull, epochMs, exactInstant } from '../instant.ts';

/** What groups are counted by; other filters would have to read the messages. */
export type GroupFilter = Readonly<{
  fingerprint?: string;
  topic?: string;
  consumerGroup?: string;
  status?: Status;
  errorClass?: string;
  /** The original topics that the caller may see; by default all. */
  names?: NameFilter;
}>;

export type GroupWindow = Readonly<{
  after: Readonly<{ lastAt: string; fingerprint: string }> | null;
  offset: number;
  pageSize: number;
}>;

export type Group = Readonly<{
  fingerprint: string;
  version: number | null;
  errorClass: string | null;
  template: string | null;
  frame: string | null;
  counts: Readonly<Record<Status, number>>;
  firstAt: Date | null;
  lastAt: Date | null;
  lastAtExact: string;
  topics: readonly string[];
  consumerGroups: readonly string[];
  trend: readonly number[];
  badges: readonly Badge[];
  sampleId: string | null;
  sampleError: string | null;
}>;

export type GroupPage = Readonly<{
  groups: readonly Group[];
  count: Readonly<{ total: number; isEstimate: boolean }>;
  hasNext: boolean;
}>;

/** Above this number the total is an estimate. */
const exactCountLimit = 1000;

/** One page of groups with messages, the latest failure first. Counts only what the filter matches. */
export async function listGroups(
  db: Queryable,
  filter: GroupFilter,
  { after, offset, pageSize }: GroupWindow,
): Promise<GroupPage> {
  const count = await countGroups(db, filter);
  if (offset > count.total) return { groups: [], count, hasNext: false };
  const groups = await selectGroups(db, filter, { after, offset, pageSize: pageSize + 1 });
  return { groups: groups.slice(0, pageSize), count, hasNext: groups.length > pageSize };
}

/** So many groups, without their total. */
export async function selectGroups(
  db: Queryable,
  filter: GroupFilter,
  { after, offset, pageSize }: GroupWindow,
): Promise<readonly Group[]> {
  const rows = await db.query<GroupRow>(sql`
    WITH page AS MATERIALIZED (
      ${matching(filter, after)}
      ORDER BY f.last_at DESC, f.fingerprint DESC
      LIMIT ${pageSize} OFFSET ${offset}
    )
    SELECT page.fingerprint, page.version, page.class, page.template, page.frame,
           page.pending, page.retrying, page.resolved, page.dead,
           ${epochMs(sql`seen.first_at`)} AS first_at, ${epochMs(sql`seen.last_at`)} AS last_at,
           ${exactInstant(sql`page.last_at`)} AS last_at_exact,
           date_part('epoch', clock_timestamp() - GREATEST(seen.first_at, '0001-01-01')) / 3600 AS first_seen_hours_ago,
           COALESCE(places.topics, '{}') AS topics, COALESCE(places.consumer_groups, '{}') AS consumer_groups,
           COALESCE(hours.ages, '{}') AS ages, COALESCE(hours.arrived, '{}') AS arrived,
           COALESCE(hours.opened, '{}') AS opened, sample.id AS sample_id, sample.error_message AS sample_error
    FROM page
    CROSS JOIN LATERAL (${seenOf(filter)}) AS seen
    CROSS JOIN LATERAL (${placesOf(filter)}) AS places
    CROSS JOIN LATERAL (${hoursOf(filter)}) AS hours
    LEFT JOIN LATERAL (${sampleOf(filter)}) AS sample ON true
    ORDER BY page.last_at DESC, page.fingerprint DESC`);
  return rows.map(groupOf);
}

type GroupRow = {
  fingerprint: string;
  version: number | null;
  class: string | null;
  template: string | null;
  frame: string | null;
  pending: bigint;
  retrying: bigint;
  resolved: bigint;
  dead: bigint;
  first_at: number;
  last_at: number;
  last_at_exact: string;
  first_seen_hours_ago: number;
  topics: readonly string[];
  consumer_groups: readonly string[];
  ages: readonly number[];
  arrived: readonly number[];
  opened: readonly number[];
  sample_id: string | null;
  sample_error: string | null;
};

/** Walks the groups by their last failure and adds up each one's figures, until the page is full. */
function matching(filter: GroupFilter, after: GroupWindow['after']): Sql {
  const { topic, fingerprint, errorClass } = filter;
  return sql`
    SELECT f.fingerprint, f.version, f.class, f.template, f.frame, f.first_at, f.last_at, figures.*
    FROM dlq.fingerprints f
    CROSS JOIN LATERAL (
      SELECT COALESCE(sum(g.messages) FILTER (WHERE g.status = 'PENDING'), 0)::bigint AS pending,
             COALESCE(sum(g.messages) FILTER (WHERE g.status = 'RETRYING'), 0)::bigint AS retrying,
             COALESCE(sum(g.messages) FILTER (WHERE g.status = 'RESOLVED'), 0)::bigint AS resolved,
             COALESCE(sum(g.messages) FILTER (WHERE g.status = 'DEAD'), 0)::bigint AS dead
      FROM dlq.group_figures g
      WHERE g.fingerprint = f.fingerprint AND ${isCounted(filter)}
    ) AS figures
    WHERE figures.pending + figures.retrying + figures.resolved + figures.dead > 0
      AND ${after === null ? sql`true` : sql`(f.last_at, f.fingerprint) < (${after.lastAt}::timestamptz, ${after.fingerprint})`}
      AND ${fingerprint === undefined ? sql`true` : sql`f.fingerprint = ${fingerprint}`}
      AND ${errorClass === undefined ? sql`true` : sql`f.class = ${errorClass}`}
      AND ${topic === undefined ? sql`true` : sql`f.fingerprint IN (SELECT t.fingerprint FROM dlq.group_figures t WHERE t.original_topic = ${topic})`}`;
}

function isCounted({ topic, consumerGroup, status, names = null }: GroupFilter): Sql {
  return sql`${topic === undefined ? sql`true` : sql`g.original_topic = ${topic}`}
    AND ${consumerGroup === undefined ? sql`true` : sql`g.consumer_group = ${consumerGroup}`}
    AND ${status === undefined ? sql`true` : sql`g.status = ${status}`}
    AND ${isNamed(sql`g.original_topic`, names)}`;
}

/** When the group failed first and last; for a narrowed role, among the stored messages that it may see. */
function seenOf({ names = null }: GroupFilter): Sql {
  if (names === null) return sql`SELECT page.first_at, page.last_at`;
  return sql`
    SELECT min(t.created_at) AS first_at, max(t.created_at) AS last_at FROM dlq.dlq_messages t
    WHERE t.fingerprint = page.fingerprint AND ${isNamed(sql`t.original_topic`, names)}`;
}

const namedPlaces = 20;

/** The topics and consumer groups with the most messages. */
function placesOf(filter: GroupFilter): Sql {
  const top = (column: Sql): Sql => sql`ARRAY(
    SELECT ${column} FROM dlq.group_figures g
    WHERE g.fingerprint = page.fingerprint AND ${isCounted(filter)} AND ${column} <> ''
    GROUP BY ${column} HAVING sum(g.messages) > 0
    ORDER BY sum(g.messages) DESC, ${column}
    LIMIT ${namedPlaces})`;
  return sql`SELECT ${top(sql`g.original_topic`)} AS topics, ${top(sql`g.consumer_group`)} AS consumer_groups`;
}

/** Of the last day. A status is no filter here: failures arrive in one and leave it later. */
function hoursOf({ topic, consumerGroup, names = null }: GroupFilter): Sql {
  const places: GroupFilter = {
    names,
    ...(topic === undefined ? {} : { topic }),
    ...(consumerGroup === undefined ? {} : { consumerGroup }),
  };
  return sql`
    SELECT array_agg(h.age) AS ages, array_agg(h.arrived) AS arrived, array_agg(h.opened) AS opened
    FROM (
      SELECT (date_part('epoch', date_trunc('hour', clock_timestamp(), 'UTC') - g.hour) / 3600)::int AS age,
             sum(g.arrived)::float8 AS arrived,
             COALESCE(sum(g.messages) FILTER (WHERE g.status IN ('PENDING', 'RETRYING')), 0)::float8 AS opened
      FROM dlq.group_figures g
      WHERE g.fingerprint = page.fingerprint AND g.hour > clock_timestamp() - interval '25 hours'
        AND ${isCounted(places)}
      GROUP BY g.hour
    ) AS h`;
}

/** The newest message of the group. */
function sampleOf({ status, names = null }: GroupFilter): Sql {
  const newestOf = (one: Sql): Sql => sql`(
    SELECT t.id, t.created_at, left(t.error_message, 500) AS error_message FROM dlq.dlq_messages t
    WHERE t.fingerprint = page.fingerprint AND t.status = ${one} AND ${isNamed(sql`t.original_topic`, names)}
    ORDER BY t.created_at DESC, t.id DESC LIMIT 1)`;
  if (status !== undefined) return newestOf(sql`${status}`);
  return sql`
    SELECT newest.id, newest.error_message FROM (
      ${newestOf(sql`'PENDING'`)} UNION ALL ${newestOf(sql`'RETRYING'`)}
      UNION ALL ${newestOf(sql`'RESOLVED'`)} UNION ALL ${newestOf(sql`'DEAD'`)}
    ) AS newest
    ORDER BY newest.created_at DESC, newest.id DESC LIMIT 1`;
}

function groupOf(row: GroupRow): Group {
  const hours = row.ages.map((age, i): GroupHour => ({
    age,
    arrived: row.arrived[i] ?? 0,
    opened: row.opened[i] ?? 0,
  }));
  return {
    fingerprint: row.fingerprint,
    version: row.version,
    errorClass: row.class,
    template: row.template,
    frame: row.frame,
    counts: {
      PENDING: Number(row.pending),
      RETRYING: Number(row.retrying),
      RESOLVED: Number(row.resolved),
      DEAD: Number(row.dead),
    },
    firstAt: dateOrNull(row.first_at),
    lastAt: dateOrNull(row.last_at),
    lastAtExact: row.last_at_exact,
    topics: row.topics,
    consumerGroups: row.consumer_groups,
    trend: trendOf(hours),
    badges: badgesOf({
      hours,
      open: Number(row.pending + row.retrying),
      firstSeenHoursAgo: row.first_seen_hours_ago,
    }),
    sampleId: row.sample_id,
    sampleError: row.sample_error,
  };
}

async function countGroups(
  db: Queryable,
  filter: GroupFilter,
): Promise<Readonly<{ total: number; isEstimate: boolean }>> {
  const [row] = await db.query<{ count: bigint }>(sql`
    SELECT count(*) AS count FROM (${matching(filter, null)} ORDER BY f.last_at DESC, f.fingerprint DESC LIMIT ${exactCountLimit + 1}) AS counted`);
  const count = Number(row?.count ?? 0n);
  if (count <= exactCountLimit) return { total: count, isEstimate: false };
  // The estimate counts all groups, also those that a narrowed role may not see.
  if ((filter.names ?? null) !== null) return { total: count, isEstimate: true };
  const [estimate] = await db.query<{ rows: number }>(
    sql`SELECT reltuples::float8 AS rows FROM pg_class WHERE oid = 'dlq.fingerprints'::regclass`,
  );
  return { total: Math.max(count, Math.round(estimate?.rows ?? 0)), isEstimate: true };
}
