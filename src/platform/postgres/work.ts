import { trace } from '@opentelemetry/api';
import type { Clock } from '../../kernel/clock.ts';
import type { Lease } from '../../kernel/lease.ts';
import type { Queryable } from './database.ts';
import { rowsOf } from './rows-of.ts';
import { sql, type Sql } from './sql.ts';
import { withSpan } from '../telemetry/tracing.ts';

const tracer = trace.getTracer('redrive');

/**
 * Claim, do, settle: the one mechanism that all slices use over their own tables.
 *
 * A claim picks due rows that nobody else has locked, and writes owner, end and epoch of the lease in the same
 * statement. The epoch is drawn from one sequence, grows and is never reset, so it is the fencing token: a
 * settle matches its rows by id, epoch *and* status. A row that does not match was taken over by a rescuer, an
 * operator or a cancel; the write is stale, is dropped and is counted. The reaper takes rows whose lease ended
 * and bumps their epoch, so that the lost worker can never settle them again. All lease times are the
 * database's.
 *
 * The table must have `lease_owner`, `lease_until`, `lease_epoch` and `lease_lost`. What a slice adds (its
 * statuses, counters, history) comes as SQL from the slice, written out there.
 */
export type WorkTable = Readonly<{
  slice: string;
  /** `dlq.dlq_messages`; in every part that a slice passes, this table is `t`. */
  table: Sql;
  /** The key column, and the array type of its values: `id`, `uuid[]`. */
  key: Sql;
  keyArray: Sql;
}>;

export type Worker = Readonly<{
  db: Queryable;
  clock: Clock;
  /** Who holds the leases: one name per process. */
  owner: string;
  onStale: (slice: string, count: number) => void;
}>;

export type Claimed<Row> = Readonly<{ lease: Lease; rows: readonly Row[] }>;

export type ClaimOptions = Readonly<{
  /** Which rows are due, the statuses included. */
  where: Sql;
  /** Exactly the order of a (partial) index, or the claim scans. */
  orderBy: Sql;
  limit: number;
  leaseMs: number;
  /** Columns of the row as it was before the claim, with leading commas; the rest reads them from `picked`. */
  was?: Sql;
  /** What starting an attempt changes. May read `epoch.value`. */
  set: Sql;
  /** Columns of the claimed row as the slice's row type has them. */
  returning: Sql;
  /** Further CTEs over `claimed`, each with a leading comma: history rows, for example. */
  also?: Sql;
  /** The order of the result; a claim has none by itself. */
  rowOrder?: Sql;
}>;

/**
 * The picked rows are updated by their keys, handed on as an array: the planner does not know how many there are,
 * expects a few, and looks each of them up. Where it expects a thousand it reads the whole of a table of small
 * rows instead, for every batch.
 */
export async function claim<Row>(
  worker: Worker,
  { slice, table, key }: WorkTable,
  options: ClaimOptions,
): Promise<Claimed<Row>> {
  // Read before the claim: by this clock the lease can only end too early.
  const askedAtMs = worker.clock.monotonicMs();
  const statement = sql`
    WITH epoch AS MATERIALIZED (
      SELECT nextval('platform.lease_epochs') AS value
    ), picked AS MATERIALIZED (
      SELECT t.${key} AS key${options.was ?? sql``} FROM ${table} t
      WHERE ${options.where}
      ORDER BY ${options.orderBy}
      LIMIT ${options.limit}
      FOR UPDATE SKIP LOCKED
    ), claimed AS (
      UPDATE ${table} t
      SET ${options.set},
          lease_owner = ${worker.owner},
          lease_until = clock_timestamp() + ${options.leaseMs} * interval '1 millisecond',
          lease_epoch = epoch.value
      FROM epoch, unnest(ARRAY(SELECT picked.key FROM picked)) AS keys (key)${
        options.was === undefined ? sql`` : sql` JOIN picked ON picked.key = keys.key`
      }
      WHERE t.${key} = keys.key AND t.lease_epoch < epoch.value
      RETURNING ${options.returning}, epoch.value AS claim_epoch
    )${options.also ?? sql``}
    SELECT * FROM claimed ORDER BY ${options.rowOrder ?? sql`claim_epoch`}`;
  const rows = await withSpan(tracer, 'claim', { slice, limit: options.limit }, () =>
    worker.db.query<Row & { claim_epoch: bigint }>(statement),
  );
  const lease: Lease = {
    owner: worker.owner,
    epoch: rows[0]?.claim_epoch ?? 0n,
    endsAtMs: askedAtMs + options.leaseMs,
  };
  return { lease, rows };
}

export type SettleOptions = Readonly<{
  /**
   * What is settled: a FROM item called `held` with the columns `key` and `epoch`, and whatever else the other
   * parts read from it. Where one epoch and nothing else is needed, `heldRows` makes it.
   */
  held: Sql;
  count: number;
  /** The statuses that a row of this claim may still have. */
  guard: Sql;
  /** What the end changes; `delete` where nothing of the row stays. */
  set: Sql | 'delete';
  returning: Sql;
  /** Further CTEs over `settled`, each with a leading comma. */
  also?: Sql;
  /** Whether the mark of a lost worker stays: no, unless the work was given back unstarted. */
  keepsLeaseLost?: Sql;
  /** Whether the lease stays: no, unless the work goes on. */
  keepsLease?: Sql;
}>;

/** Rows of one claim. */
export function heldRows({ keyArray }: WorkTable, keys: readonly unknown[], epoch: bigint): Sql {
  const rows = rowsOf(sql`keys`, keys, [[sql`key`, keyArray, (key) => key]]);
  return sql`(SELECT keys.key, ${epoch}::bigint AS epoch FROM ${rows}) AS held`;
}

/**
 * Ends attempts, and the lease with them. Rows that did not match are not in the result: the caller asks why (an
 * outcome of ours that is already there is no stale write) and reports the rest with `worker.onStale`.
 *
 * It is written so that the planner goes by the keys. With `key = ANY(…)`, or with a guard that an index can
 * serve, it has been seen to read the whole of another index that holds the key or the status, with everything
 * that earlier batches left in it. Where it sees how many keys there are, it reads the whole of a table of small
 * rows and compares every row of the claim with every key: `rowsOf` hides the number.
 */
export async function settle<Row>(
  db: Queryable,
  { slice, table, key }: WorkTable,
  options: SettleOptions,
): Promise<readonly Row[]> {
  const matches = sql`
      WHERE t.${key} = held.key
        AND t.lease_epoch = held.epoch
        AND (${options.guard}) IS TRUE
      RETURNING ${options.returning}`;
  const change =
    options.set === 'delete'
      ? sql`DELETE FROM ${table} t USING ${options.held} ${matches}`
      : sql`
      UPDATE ${table} t
      SET ${options.set}, ${leaseAfter(options.keepsLease)},
          lease_lost = t.lease_lost AND ${options.keepsLeaseLost ?? sql`false`}
      FROM ${options.held} ${matches}`;
  const statement = sql`WITH settled AS (${change})${options.also ?? sql``} SELECT * FROM settled`;
  return withSpan(tracer, 'settle', { slice, items: options.count }, () => db.query<Row>(statement));
}

function leaseAfter(keepsLease: Sql | undefined): Sql {
  if (keepsLease === undefined) return sql`lease_owner = NULL, lease_until = NULL`;
  return sql`
          lease_owner = CASE WHEN ${keepsLease} THEN t.lease_owner END,
          lease_until = CASE WHEN ${keepsLease} THEN t.lease_until END`;
}

/** Prolongs leases; the keys that are still held come back, the others are lost and must be let go. */
export async function renew<Key>(
  worker: Worker,
  { table, key, keyArray }: WorkTable,
  held: Readonly<{ keys: readonly Key[]; epochs: readonly bigint[]; leaseMs: number }>,
): Promise<Readonly<{ keys: readonly Key[]; endsAtMs: number }>> {
  const askedAtMs = worker.clock.monotonicMs();
  const rows = await worker.db.query<{ key: Key }>(sql`
    WITH held AS (
      SELECT * FROM unnest(${held.keys}::${keyArray}, ${held.epochs}::bigint[]) AS held (key, epoch)
    ), locked AS MATERIALIZED (
      SELECT t.${key} AS key FROM ${table} t JOIN held ON t.${key} = held.key AND t.lease_epoch = held.epoch
      ORDER BY t.${key}
      FOR UPDATE OF t
    )
    UPDATE ${table} t
    SET lease_until = clock_timestamp() + ${held.leaseMs} * interval '1 millisecond'
    FROM locked
    WHERE t.${key} = locked.key AND t.lease_owner = ${worker.owner}
    RETURNING t.${key} AS key`);
  return { keys: rows.map((row) => row.key), endsAtMs: askedAtMs + held.leaseMs };
}

export type ReapOptions = Readonly<{
  /** The working status; the reaper adds that the lease is over. */
  where: Sql;
  limit: number;
  set: Sql;
  returning: Sql;
  /** Further CTEs over `reaped`, each with a leading comma. */
  also?: Sql;
}>;

/** A lease that is over or that was never there; rows in a working status without one count as lost too. */
export const leaseIsOver: Sql = sql`(t.lease_until IS NULL OR t.lease_until <= clock_timestamp())`;

/** Ends attempts whose lease is over. The new epoch shuts out the worker that lost them. */
export async function reap<Row>(
  db: Queryable,
  { table, key }: WorkTable,
  options: ReapOptions,
): Promise<readonly Row[]> {
  return db.query<Row>(sql`
    WITH picked AS MATERIALIZED (
      SELECT t.${key} AS key FROM ${table} t
      WHERE ${options.where} AND ${leaseIsOver}
      LIMIT ${options.limit}
      FOR UPDATE SKIP LOCKED
    ), epoch AS MATERIALIZED (
      SELECT nextval('platform.lease_epochs') AS value
    ), reaped AS (
      UPDATE ${table} t
      SET ${options.set},
          lease_owner = NULL, lease_until = NULL, lease_lost = true, lease_epoch = epoch.value
      FROM picked, epoch
      WHERE t.${key} = picked.key
      RETURNING ${options.returning}
    )${options.also ?? sql``}
    SELECT * FROM reaped`);
}
