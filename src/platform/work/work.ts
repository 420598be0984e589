import { trace } from '@opentelemetry/api';
import type { Clock } from '../../kernel/clock.ts';
import type { Lease } from '../../kernel/lease.ts';
import type { Queryable } from '../postgres/database.ts';
import { unnestRows } from '../postgres/unnest-rows.ts';
import { prepared, sql, type Sql } from '../postgres/sql.ts';
import { withSpan } from '../telemetry/with-span.ts';
import type { NamedLeases } from './named-leases.ts';
import type { WorkWatch } from './work-watch.ts';

const tracer = trace.getTracer('redrive');

/**
 * Claim, do, settle: how every slice shares the work in its tables among processes.
 *
 * 1. `claim` picks due rows that nobody has locked, and writes the lease (owner, end, epoch) in the same statement.
 * 2. The worker does the work outside any transaction. The lease-renewer renews leases of work that takes long.
 * 3. `settle` ends the attempt. It matches rows by key, epoch and status.
 * 4. `reap` ends attempts whose lease has expired, under a new epoch. `release` gives rows back.
 *
 * The epoch is the fencing token: one value of a sequence per claim, which only grows and is never reset. A settle whose
 * rows do not match is a stale write: the reaper, an operator or a cancel has taken the rows over. It is dropped and
 * counted, so a slow worker never overwrites its successor. Lease times are compared on the clock of the database only.
 *
 * The table has the columns `lease_owner`, `lease_until`, `lease_epoch` and `lease_lost`. The slice passes the rest
 * (statuses, counters, history) as SQL.
 */
export type WorkTable = Readonly<{
  slice: string;
  /** `dlq.dlq_messages`, for example; not partitioned. In SQL of the slice its alias is `t`. */
  table: Sql;
  /** The key column, and the array type of its values: `id`, `uuid[]`. */
  key: Sql;
  keyArray: Sql;
}>;

export type Worker = Readonly<{
  db: Queryable;
  clock: Clock;
  /** The `lease_owner` of this process. */
  owner: string;
  onStale: (slice: string, count: number) => void;
  /** Absent in the client library, whose processes export no metrics of ours. */
  watch?: WorkWatch | undefined;
  /** Those of this process, renewed together. Absent where each is renewed by itself. */
  leases?: NamedLeases | undefined;
}>;

/** After an error, a loop rests: a short outage is hardly noticed, and the log of a long one stays readable. */
export const restAfterErrorMs = 500;

export type Claimed<Row> = Readonly<{ lease: Lease; rows: readonly Row[] }>;

export type ClaimOptions = Readonly<{
  /** Which rows are due, including their statuses. */
  where: Sql;
  /** Exactly the order of a (partial) index; otherwise the claim scans. */
  orderBy: Sql;
  limit: number;
  leaseMs: number;
  /** Claims rows up to `most` bytes in total, but at least one unless `isStrict`. */
  fit?: Readonly<{ bytes: Sql; most: number; isStrict?: boolean }>;
  /** Columns of the row before the claim, with a leading comma; the other parts read them from `picked`. */
  was?: Sql;
  /** The changes of a started attempt; may read `epoch.value`. */
  set: Sql;
  /** Columns of the claimed row. */
  returning: Sql;
  /** Further CTEs over `claimed`, each with a leading comma: history rows, for example. */
  also?: Sql;
  /** The columns of `claimed` that are returned, with `claim_epoch`; by default all. */
  select?: Sql;
  /** The order of the result; by default none. */
  rowOrder?: Sql;
  /** Kept ready by the connection; for when little is expected, because its plan may be that of a smaller table. */
  isPrepared?: boolean;
}>;

const pickedPlaces: Sql = sql`ARRAY(SELECT picked.place FROM picked)`;

/**
 * Claims due rows. The picked rows are updated by their place in the table (ctid), passed on as an array: the planner
 * does not see how many there are, expects a few and looks up each of them. If it expected a thousand, it would read a
 * whole table of small rows for every batch. A row that was written between the snapshot and the lock is not found at
 * its old place and is left to the next claim.
 */
export async function claim<Row>(
  worker: Worker,
  { slice, table }: WorkTable,
  options: ClaimOptions,
): Promise<Claimed<Row>> {
  // Read before the claim, so that by this clock the lease can only end too early.
  const askedAtMs = worker.clock.monotonicMs();
  const joinWas =
    options.was === undefined
      ? sql``
      : sql`, unnest(${pickedPlaces}) AS places (place) JOIN picked ON picked.place = places.place`;
  const statement = sql`
    WITH epoch AS MATERIALIZED (
      SELECT nextval('platform.lease_epochs') AS value
    ), ${pickedRows(table, options)}, claimed AS (
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
  worker.watch?.claimed(slice, (worker.clock.monotonicMs() - askedAtMs) / 1000);
  const lease: Lease = {
    owner: worker.owner,
    epoch: rows[0]?.claim_epoch ?? 0n,
    endsAtMs: askedAtMs + options.leaseMs,
  };
  return { lease, rows };
}

function pickedRows(table: Sql, { fit, ...options }: ClaimOptions): Sql {
  const due = sql`
      FROM ${table} t
      WHERE ${options.where}
      ORDER BY ${options.orderBy}
      LIMIT ${options.limit}
      FOR UPDATE SKIP LOCKED`;
  const columns = sql`t.ctid AS place${options.was ?? sql``}`;
  if (fit === undefined) return sql`picked AS MATERIALIZED (SELECT ${columns} ${due})`;
  return sql`due AS MATERIALIZED (
      SELECT ${columns}, ${fit.bytes} AS bytes ${due}
    ), picked AS MATERIALIZED (
      SELECT * FROM (SELECT *, sum(bytes) OVER (ROWS UNBOUNDED PRECEDING) AS total FROM due) AS summed
      WHERE total <= ${fit.most}${fit.isStrict === true ? sql`` : sql` OR total = bytes`}
    )`;
}

/**
 * Runs a settle: one statement that ends attempts and their leases. The slice writes it out, so that a reader sees it
 * whole:
 *
 *     WITH settled AS (
 *       UPDATE jobs.job_queue t
 *       SET status = …, lease_owner = NULL, lease_until = NULL, lease_lost = false
 *       FROM ${unnestRows(sql`attempt`, ends, columns)}
 *       WHERE t.job_id = attempt.key AND t.lease_epoch = attempt.epoch AND (t.status = 'running') IS TRUE
 *       RETURNING …
 *     ), …
 *     SELECT … FROM settled
 *
 * It must match key, epoch and status. Rows that did not match are not in the result: the slice finds out why (an
 * earlier try may have been stored) and reports the others with `worker.onStale`. `lease_lost` stays set only when the
 * work is given back unstarted.
 *
 * Two details keep the planner on the key. `unnestRows` hides how many rows there are; otherwise it may read the whole
 * table. `IS TRUE` keeps an index on the status from being used, which is full of entries of earlier batches.
 */
export async function settle<Row>(
  db: Queryable,
  { slice, count }: Readonly<{ slice: string; count: number }>,
  statement: Sql,
): Promise<readonly Row[]> {
  return withSpan(tracer, 'settle', { slice, items: count }, () => db.query<Row>(statement));
}

/** Ends leases without any other change, so that another process can claim the rows at once. */
export async function release(
  db: Queryable,
  { table, key, keyArray }: WorkTable,
  { keys, epoch }: Readonly<{ keys: readonly unknown[]; epoch: bigint }>,
): Promise<void> {
  await db.query(sql`
    UPDATE ${table} t SET lease_owner = NULL, lease_until = NULL, lease_lost = false
    WHERE t.${key} = ANY (${keys}::${keyArray}) AND t.lease_epoch = ${epoch}`);
}

export type Renewed<Item> = Readonly<{
  renewed: readonly Item[];
  /** Still ours, but another transaction has the row locked: the lease ends when it did before. */
  locked: readonly Item[];
  /** Taken over by somebody else: stop working on these. */
  lost: readonly Item[];
  /** When the leases of `renewed` end, on the monotonic clock. */
  endsAtMs: number;
}>;

/**
 * Renews leases. It does not wait for locked rows: one open transaction would let the leases of all others expire.
 */
export async function renew<Item extends Readonly<{ lease: Lease }>>(
  worker: Worker,
  { table, key, keyArray }: WorkTable,
  items: readonly Item[],
  { keyOf, leaseMs }: Readonly<{ keyOf: (item: Item) => string | number | bigint; leaseMs: number }>,
): Promise<Renewed<Item>> {
  const askedAtMs = worker.clock.monotonicMs();
  const asked = unnestRows(sql`asked`, items, [
    [sql`key`, keyArray, keyOf],
    [sql`epoch`, sql`bigint[]`, ({ lease }) => lease.epoch],
  ]);
  const rows = await worker.db.query<{
    key: string | number | bigint;
    epoch: bigint;
    is_renewed: boolean;
  }>(sql`
    WITH leased AS MATERIALIZED (
      SELECT asked.key, asked.epoch
      FROM ${asked}
      JOIN ${table} t ON t.${key} = asked.key AND t.lease_epoch = asked.epoch
      WHERE t.lease_owner = ${worker.owner}
    ), free AS MATERIALIZED (
      SELECT t.${key} AS key FROM ${table} t JOIN leased ON t.${key} = leased.key AND t.lease_epoch = leased.epoch
      WHERE t.lease_owner = ${worker.owner}
      FOR UPDATE OF t SKIP LOCKED
    ), renewed AS (
      UPDATE ${table} t
      SET lease_until = clock_timestamp() + ${leaseMs} * interval '1 millisecond'
      FROM free
      WHERE t.${key} = free.key
      RETURNING t.${key} AS key
    )
    SELECT leased.key, leased.epoch, renewed.key IS NOT NULL AS is_renewed
    FROM leased LEFT JOIN renewed ON renewed.key = leased.key`);
  const isRenewed = new Map(rows.map((row) => [`${row.key} ${row.epoch}`, row.is_renewed]));
  // One process may hold a row twice: an old lease that it does not know to be lost, and a new one.
  const stateOf = (item: Item): boolean | undefined => isRenewed.get(`${keyOf(item)} ${item.lease.epoch}`);
  return {
    renewed: items.filter((item) => stateOf(item) === true),
    locked: items.filter((item) => stateOf(item) === false),
    lost: items.filter((item) => stateOf(item) === undefined),
    endsAtMs: askedAtMs + leaseMs,
  };
}

/** Whether the table has a row for which this holds. */
export async function hasRow(db: Queryable, { table }: WorkTable, where: Sql): Promise<boolean> {
  const [row] = await db.query<{ found: boolean }>(sql`
    SELECT EXISTS (SELECT 1 FROM ${table} t WHERE ${where}) AS found`);
  return row?.found === true;
}

export type ReapOptions = Readonly<{
  /** The working status; that the lease has expired is added. */
  where: Sql;
  limit: number;
  set: Sql;
  returning: Sql;
  /** Further CTEs over `reaped`, each with a leading comma. */
  also?: Sql;
}>;

/** The lease has expired; a row in a working status without a lease counts as lost too. */
export const leaseIsOver: Sql = sql`(t.lease_until IS NULL OR t.lease_until <= clock_timestamp())`;

/** Ends attempts whose lease has expired. The new epoch shuts out the worker that lost them. */
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
