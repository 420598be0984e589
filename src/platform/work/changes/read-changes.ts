import type { Database, Queryable } from '../../postgres/database.ts';
import { joinSql, sql, type Sql } from '../../postgres/sql.ts';
import type { WatchedRows } from './watched-rows.ts';

/** What was committed when the changes were read last. */
export type Seen = Readonly<{
  /** As PostgreSQL writes a snapshot; while it is the same, nothing has changed. */
  snapshot: string;
  /** Transactions before this one had all ended. */
  oldest: string;
  /** Changes of each slice since the statistics began, as far as its connections have reported them. */
  activity: Readonly<Record<string, string>>;
}>;

export type ChangedRow = Readonly<{ slice: string; id: string; name: string; xid: string }>;

export type Changes = Readonly<{
  seen: Seen;
  /** Written by transactions that had not all ended at `since`; some of them may have been reported before. */
  rows: readonly ChangedRow[];
}>;

/**
 * One statement for all slices, which writes nothing. A row was changed since the last time if the transaction that
 * wrote it was not over then: that also finds those that commit late. While no transaction has ended in between, no row
 * is read at all.
 */
export async function readChanges(
  db: Database,
  watched: Readonly<Record<string, WatchedRows>>,
  since: Seen | null,
): Promise<Changes> {
  const slices = Object.entries(watched);
  const parts = slices.map(
    ([slice, { rows }]) => sql`SELECT ${slice}::text AS slice, r.id, r.name, r.xid FROM (${rows}) AS r`,
  );
  const counters = slices.map(([slice, { tables }]) => sql`${slice}::text, ${countOf(tables)}::text`);
  const statement = sql`
    WITH now AS MATERIALIZED (
      SELECT s.snapshot::text AS snapshot, pg_snapshot_xmin(s.snapshot)::text AS oldest,
             pg_snapshot_xmax(s.snapshot)::text::bigint AS next
      FROM pg_current_snapshot() AS s (snapshot)
    ), changed AS MATERIALIZED (
      SELECT r.slice, r.id, r.name, ${wholeXid(sql`r.xid`, sql`(SELECT next FROM now)`)} AS xid
      FROM (${joinSql(parts, sql` UNION ALL `)}) AS r
      WHERE (SELECT snapshot FROM now) <> ${since?.snapshot ?? null}::text
    )
    SELECT now.snapshot, now.oldest, jsonb_build_object(${joinSql(counters, sql`, `)}) AS activity, (
      SELECT jsonb_agg(DISTINCT jsonb_build_object('slice', c.slice, 'id', c.id, 'name', c.name, 'xid', c.xid::text))
      FROM changed c WHERE c.xid >= ${since?.oldest ?? null}::bigint
    ) AS rows
    FROM now`;
  type Row = Seen & Readonly<{ rows: readonly ChangedRow[] | null }>;
  const [row] = await inIndexOrder(db, (tx) => tx.query<Row>(statement));
  if (row === undefined) throw new Error('the statement for changes returned no row');
  const { rows, ...seen } = row;
  return { seen, rows: rows ?? [] };
}

/** Rows have the last 32 bits of the number of a transaction, and the transaction has begun before `next`. */
function wholeXid(xid: Sql, next: Sql): Sql {
  return sql`(${next} - (((${next} - ${xid}::text::bigint) % 4294967296 + 4294967296) % 4294967296))`;
}

function countOf(tables: readonly string[]): Sql {
  const each = tables.map(
    (table) => sql`(
      SELECT pg_stat_get_tuples_inserted(t.oid) + pg_stat_get_tuples_updated(t.oid) + pg_stat_get_tuples_deleted(t.oid)
      FROM pg_catalog.pg_class t WHERE t.oid = ${table}::regclass)`,
  );
  return sql`(${joinSql(each, sql` + `)})`;
}

export type AttentionCount = Readonly<{ slice: string; name: string; count: number }>;

/** What needs attention, by name. */
export async function countAttention(
  db: Database,
  watched: Readonly<Record<string, WatchedRows>>,
  slices: readonly string[],
): Promise<readonly AttentionCount[]> {
  const parts = slices.flatMap((slice) => {
    const one = watched[slice];
    return one === undefined
      ? []
      : [sql`SELECT ${slice}::text AS slice, a.name, a.count::int AS count FROM (${one.attention}) AS a`];
  });
  if (parts.length === 0) return [];
  return inIndexOrder(db, (tx) => tx.query<AttentionCount>(joinSql(parts, sql` UNION ALL `)));
}

/** For a table that was just filled statistics are outdated, and the planner would read and sort all of it. */
async function inIndexOrder<T>(db: Database, read: (tx: Queryable) => Promise<T>): Promise<T> {
  return db.transaction(async (tx) => {
    await tx.query(sql`
      SELECT set_config(name, 'off', true)
      FROM unnest('{enable_seqscan,enable_bitmapscan,enable_sort}'::text[]) AS name`);
    return read(tx);
  });
}
