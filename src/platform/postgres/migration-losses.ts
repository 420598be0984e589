import type { Database, Queryable } from './database.ts';
import { lockMigrations, type Migration } from './migrate.ts';
import { Sql, sql } from './sql.ts';

/** What a rollback would delete of one table: some of its columns, or all of it. */
export type Loss = Readonly<{ table: string; columns: readonly string[] | 'all'; rows: Counted }>;

/** What it would delete or change in a table that stays. */
export type Touched = Readonly<{ table: string; deleted: number; changed: number }>;

/** Rows are counted up to a limit: larger numbers would not change the decision. */
export type Counted = Readonly<{ count: number; isMore: boolean }>;

const countTo = 1_000_000;

/** Thrown to undo the rehearsal. */
class Rehearsed extends Error {}

/** Runs the down migrations in a transaction that is rolled back, and compares the tables before and after. */
export async function lossesOf(
  db: Database,
  slices: readonly string[],
  migrations: readonly Migration[],
): Promise<Readonly<{ losses: readonly Loss[]; touched: readonly Touched[] }>> {
  let lost: readonly Omit<Loss, 'rows'>[] = [];
  let touched: readonly Touched[] = [];
  const rehearse = async (tx: Queryable): Promise<never> => {
    await lockMigrations(tx);
    // Whoever uses the tables waits behind us meanwhile.
    await tx.query(sql`SET LOCAL lock_timeout = '5s'`);
    const before = await columnsByTable(tx, slices);
    const touchedBefore = await touchedTables(tx);
    for (const { down } of migrations) await tx.query(new Sql([down], []));
    const after = await columnsByTable(tx, slices);
    lost = [...before].flatMap(([table, columns]): readonly Omit<Loss, 'rows'>[] => {
      const left = after.get(table);
      if (left === undefined) return [{ table, columns: 'all' }];
      const gone = columns.filter((column) => !left.includes(column));
      return gone.length === 0 ? [] : [{ table, columns: gone }];
    });
    touched = newlyTouched(touchedBefore, await touchedTables(tx)).filter(
      ({ table }) => before.has(table) && after.has(table),
    );
    throw new Rehearsed();
  };
  try {
    await db.transaction(rehearse, { isPatient: true });
  } catch (error) {
    if (!(error instanceof Rehearsed)) throw error;
  }
  const losses: Loss[] = [];
  for (const one of lost) losses.push({ ...one, rows: await countRows(db, one.table) });
  return { losses, touched };
}

/** As this transaction has touched them, and others of this session that PostgreSQL has not added up yet. */
async function touchedTables(tx: Queryable): Promise<readonly Touched[]> {
  return tx.query<Touched>(sql`
    SELECT format('%I.%I', n.nspname, c.relname) AS "table", sum(s.n_tup_del)::float8 AS deleted,
           sum(s.n_tup_upd)::float8 AS changed
    FROM pg_stat_xact_user_tables s
    JOIN pg_class c ON c.oid = COALESCE(pg_partition_root(s.relid), s.relid)
    JOIN pg_namespace n ON n.oid = c.relnamespace
    GROUP BY 1
    HAVING sum(s.n_tup_del) + sum(s.n_tup_upd) > 0
    ORDER BY 1`);
}

function newlyTouched(before: readonly Touched[], after: readonly Touched[]): readonly Touched[] {
  const earlier = new Map(before.map((one) => [one.table, one]));
  return after
    .map(({ table, deleted, changed }) => ({
      table,
      deleted: deleted - (earlier.get(table)?.deleted ?? 0),
      changed: changed - (earlier.get(table)?.changed ?? 0),
    }))
    .filter(({ deleted, changed }) => deleted > 0 || changed > 0);
}

/** By the table's quoted name. A partition is a part of its table. */
async function columnsByTable(
  tx: Queryable,
  slices: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  const rows = await tx.query<{ name: string; columns: readonly string[] }>(sql`
    SELECT format('%I.%I', n.nspname, c.relname) AS name, array_agg(a.attname::text ORDER BY a.attnum) AS columns
    FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
    WHERE n.nspname = ANY (${slices}::text[]) AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    GROUP BY 1
    ORDER BY 1`);
  return new Map(rows.map(({ name, columns }) => [name, columns]));
}

async function countRows(db: Queryable, table: string): Promise<Counted> {
  const limited = new Sql(
    [`SELECT count(*)::int AS count FROM (SELECT 1 FROM ${table} LIMIT `, ') AS rows'],
    [countTo + 1],
  );
  const [row] = await db.query<{ count: number }>(limited);
  const count = row?.count ?? 0;
  return { count: Math.min(count, countTo), isMore: count > countTo };
}
