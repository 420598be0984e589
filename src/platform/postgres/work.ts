import { trace } from '@opentelemetry/api';
import type { Clock } from '../../kernel/clock.ts';
import type { Lease } from '../../kernel/lease.ts';
import type { Queryable } from './database.ts';
import { rowsOf } from './rows-of.ts';
import { prepared, sql, type Sql } from './sql.ts';
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
  /** `dlq.dlq_messages`, not partitioned; in every part that a slice passes, this table is `t`. */
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
  /** What of `claimed` comes back, `claim_epoch` included; all of it, unless it says otherwise. */
  select?: Sql;
  /** The order of the result; a claim has none by itself. */
  rowOrder?: Sql;
  /** Kept ready by the connection; for when little is expected, because its plan may be that of a smaller table. */
  isPrepared?: boolean;
}>;

const pickedPlaces: Sql = sql`ARRAY(SELECT picked.place FROM picked)`;

/**
 * The picked rows are updated where they lie, handed on as an array: the planner does not know how many there are,
 * expects a few, and goes to each of them. Where it expects a thousand it reads the whole of a table of small rows
 * instead, for every batch. A row that somebody has written between the snapshot and the lock is not there for this
 * statement: it is left to the next claim.
 */
export async function claim<Row>(
  worker: Worker,
  { slice, table }: WorkTable,
  options: ClaimOptions,
): Promise<Claimed<Row>> {
  // Read before the claim: by this clock the lease can only end too early.
  const askedAtMs = worker.clock.monotonicMs();
  const joinWas =
    options.was === undefined
      ? sql``
      : sql`, unnest(${pickedPlaces}) AS places (place) JOIN picked ON picked.place = places.place`;
  const statement = sql`
    WITH epoch AS MATERIALIZED (
      SELECT nextval('platform.lease_epochs') AS value
    ), picked AS MATERIALIZED (
      SELECT t.ctid AS place${options.was ?? sql``} FROM ${table} t
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
      FROM epoch${joinWas}
      WHERE t.ctid = ${options.was === undefined ? sql`ANY (${pickedPlaces})` : sql`places.place`}
        AND t.lease_epoch < epoch.value
      RETURNING ${options.returning}, epoch.value AS claim_epoch
    )${options.also ?? sql``}
    SELECT ${options.select ?? sql`*`} FROM claimed ORDER BY ${options.rowOrder ?? sql`claim_epoch`}`;
  const rows = await withSpan(tracer, 'claim', { slice, limit: options.limit }, () =>
    worker.db.query<Row & { claim_epoch: bigint }>(
      options.isPrepared === true ? prepared(statement) : statement,
    ),
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
  /** What of `settled` comes back; all of it, unless it says otherwise. */
  select?: Sql;
  /** Further CTEs over `settled`, each with a leading comma. */
  also?: Sql;
  /** Whether the mark of a lost worker stays: no, unless the work was given back unstarted. */
  keepsLeaseLost?: Sql;
  /** Whether the lease stays: no, unless the work goes on. */
  keepsLease?: Sql;
  /** Kept ready by the connection: see `KeptReady`. */
  isPrepared?: boolean;
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
  const statement = sql`WITH settled AS (${change})${options.also ?? sql``} SELECT ${options.select ?? sql`*`} FROM settled`;
  return withSpan(tracer, 'settle', { slice, items: options.count }, () =>
    db.query<Row>(options.isPrepared === true ? prepared(statement) : statement),
  );
}

function leaseAfter(keepsLease: Sql | undefined): Sql {
  if (keepsLease === undefined) return sql`lease_owner = NULL, lease_until = NULL`;
  return sql`
          lease_owner = CASE WHEN ${keepsLease} THEN t.lease_owner END,
          lease_until = CASE WHEN ${keepsLease} THEN t.lease_until END`;
}

export type Renewed<Key> = Readonly<{
  keys: readonly Key[];
  /** Still ours as far as anybody can see, but somebody has the row locked: their leases end as they did before. */
  locked: readonly Key[];
  /** When the leases of `keys` end, on the monotonic clock. */
  endsAtMs: number;
}>;

/**
 * Prolongs leases. What is in neither list is lost and must be let go. A row that somebody else has locked is not
 * waited for: one open transaction would let the leases of all others run out. Its lease is asked for again soon.
 */
export async function renew<Key>(
  worker: Worker,
  { table, key, keyArray }: WorkTable,
  held: Readonly<{ keys: readonly Key[]; epochs: readonly bigint[]; leaseMs: number }>,
): Promise<Renewed<Key>> {
  const askedAtMs = worker.clock.monotonicMs();
  const asked = rowsOf(
    sql`asked`,
    [...held.keys.entries()],
    [
      [sql`key`, keyArray, ([, one]) => one],
      [sql`epoch`, sql`bigint[]`, ([index]) => held.epochs[index]],
    ],
  );
  const rows = await worker.db.query<{ key: Key; is_renewed: boolean }>(sql`
    WITH held AS MATERIALIZED (
      SELECT asked.key, asked.epoch
      FROM ${asked}
      JOIN ${table} t ON t.${key} = asked.key AND t.lease_epoch = asked.epoch
      WHERE t.lease_owner = ${worker.owner}
    ), free AS MATERIALIZED (
      SELECT t.${key} AS key FROM ${table} t JOIN held ON t.${key} = held.key AND t.lease_epoch = held.epoch
      WHERE t.lease_owner = ${worker.owner}
      FOR UPDATE OF t SKIP LOCKED
    ), renewed AS (
      UPDATE ${table} t
      SET lease_until = clock_timestamp() + ${held.leaseMs} * interval '1 millisecond'
      FROM free
      WHERE t.${key} = free.key
      RETURNING t.${key} AS key
    )
    SELECT held.key, renewed.key IS NOT NULL AS is_renewed FROM held LEFT JOIN renewed ON renewed.key = held.key`);
  const keysOf = (isRenewed: boolean): readonly Key[] =>
    rows.filter((row) => row.is_renewed === isRenewed).map((row) => row.key);
  return { keys: keysOf(true), locked: keysOf(false), endsAtMs: askedAtMs + held.leaseMs };
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
