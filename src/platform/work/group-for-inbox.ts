import type { InboxGroup, InboxKind, InboxSample } from '../../kernel/inbox/inbox-group.ts';
import type { Queryable } from '../postgres/database.ts';
import { sql, type Sql } from '../postgres/sql.ts';

/** Items of one kind, name and cause, as the inbox shows them; a slice adds where they are and what can be done. */
export type GroupedItems = Pick<
  InboxGroup,
  'count' | 'oldestAt' | 'newestAt' | 'arrivals' | 'trend' | 'title'
> &
  Readonly<{
    kind: InboxKind;
    name: string;
    cause: string;
    isDangerous: boolean;
    newestIds: readonly string[];
    isPartial: boolean;
  }>;

type Row = Readonly<{
  kind: InboxKind;
  name: string;
  cause: string;
  count: number;
  oldest_at: number | null;
  newest_at: number | null;
  title: string | null;
  is_dangerous: boolean;
  newest_ids: readonly string[];
  recent: number;
  before: number;
  ages: readonly number[] | null;
  arrived: readonly number[] | null;
  scanned: number;
}>;

const inboxGroupLimit = 1000;
const trendHours = 24;
const recentMinutes = 10;
const sampled = 3;

/**
 * `items` is a bounded SELECT of `kind`, `name`, `cause`, `id` (text), `title`, `at` and `is_dangerous`. `limit` is its
 * bound: if so many were read, there may be more.
 */
export async function groupForInbox(
  db: Queryable,
  items: Sql,
  limit: number,
): Promise<readonly GroupedItems[]> {
  const rows = await db.query<Row>(sql`
    WITH items AS MATERIALIZED (${items}), hours AS (
      SELECT kind, name, cause, floor(date_part('epoch', clock_timestamp() - at) / 3600)::int AS age,
             count(*)::int AS arrived
      FROM items WHERE at > clock_timestamp() - ${trendHours} * interval '1 hour'
      GROUP BY 1, 2, 3, 4
    ), trends AS (
      SELECT kind, name, cause, array_agg(age) AS ages, array_agg(arrived) AS arrived FROM hours GROUP BY 1, 2, 3
    ), groups AS (
      SELECT kind, name, cause, count(*)::float8 AS count, min(at) AS oldest_at, max(at) AS newest_at,
             (array_agg(title ORDER BY at DESC, id DESC))[1] AS title, bool_or(is_dangerous) AS is_dangerous,
             (array_agg(id ORDER BY at DESC, id DESC))[1:${sampled}::int] AS newest_ids,
             count(*) FILTER (WHERE at > clock_timestamp() - ${recentMinutes} * interval '1 minute')::float8 AS recent,
             count(*) FILTER (WHERE at <= clock_timestamp() - ${recentMinutes} * interval '1 minute'
               AND at > clock_timestamp() - ${trendHours} * interval '1 hour')::float8 AS before
      FROM items GROUP BY 1, 2, 3
      ORDER BY count DESC, name, cause LIMIT ${inboxGroupLimit}
    )
    SELECT g.kind, g.name, g.cause, g.count, ${milliseconds(sql`g.oldest_at`)} AS oldest_at,
           ${milliseconds(sql`g.newest_at`)} AS newest_at, g.title, g.is_dangerous, g.newest_ids, g.recent, g.before,
           t.ages, t.arrived, (SELECT count(*) FROM items)::float8 AS scanned
    FROM groups g LEFT JOIN trends t ON (t.kind, t.name, t.cause) = (g.kind, g.name, g.cause)`);
  return rows.map((row) => groupOf(row, rows.length >= inboxGroupLimit || row.scanned >= limit));
}

/** Infinite times become the nearest that can be shown. */
function milliseconds(instant: Sql): Sql {
  return sql`LEAST(GREATEST(floor(extract(epoch FROM ${instant}) * 1000), -62135596800000), 253402300799999)::float8`;
}

function groupOf(row: Row, isPartial: boolean): GroupedItems {
  const trend = Array.from({ length: trendHours }, () => 0);
  row.ages?.forEach((age, n) => (trend[trendHours - 1 - Math.max(0, age)] = row.arrived?.[n] ?? 0));
  return {
    kind: row.kind,
    name: row.name,
    cause: row.cause,
    count: row.count,
    oldestAt: row.oldest_at === null ? null : new Date(row.oldest_at),
    newestAt: row.newest_at === null ? null : new Date(row.newest_at),
    title: row.title ?? row.cause,
    isDangerous: row.is_dangerous,
    newestIds: row.newest_ids,
    arrivals: {
      recent: row.recent,
      minutes: recentMinutes,
      usual: (row.before * recentMinutes) / (trendHours * 60 - recentMinutes),
    },
    trend,
    isPartial,
  };
}

/** The newest items of a group; they have one cause, so its text is theirs. */
export function samplesOf(
  { newestIds, title }: GroupedItems,
  linkOf: (id: string) => string,
): readonly InboxSample[] {
  return newestIds.map((id) => ({ id, text: title, link: linkOf(id) }));
}
