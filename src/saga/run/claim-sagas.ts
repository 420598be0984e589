import { messageOf } from '../../kernel/errors.ts';
import { MAX_JSON_BYTES } from '../../kernel/json-extent.ts';
import type { Lease } from '../../kernel/lease.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { createClaimCursor, type ClaimCursor } from '../../platform/work/claim-cursor.ts';
import { claim, type Claimed, type ClaimOptions, type Worker } from '../../platform/work/work.ts';
import { sagaHeads, sagas, type SagaRow } from '../saga-table.ts';
import type { DatabaseClock } from './database-clock.ts';
import { faultOf } from './fault-of.ts';
import type { LeasedSaga } from './leased-sagas.ts';
import {
  bodyOf,
  createDefinitions,
  leasedSaga,
  payload,
  readBodies,
  readLogs,
  type ClaimedRow,
  type Definitions,
} from './read-sagas.ts';
import { releaseSagas, releaseUnreadable, type Release } from './release-sagas.ts';

export type ClaimDeps = Readonly<{ db: Database; worker: Worker; time: DatabaseClock }>;

export type SagaClaim = Readonly<{
  limit: number;
  /** Claims at most this total size, but at least one saga. */
  bytes: number;
  leaseMs: number;
  /** Whether to claim sagas that run alone, or the others. */
  alone: boolean;
}>;

type Claims = ClaimDeps & {
  readonly definitions: Definitions;
  readonly cursor: ClaimCursor<Date>;
  /** Halved after a claim that failed or was too large, and doubled after one that was not. */
  maxRows: number;
};

/**
 * Claims due sagas, oldest first. Large ones are read by a second statement; those that exceed the size limit are
 * released at once, and the next claim asks for fewer. If a claim cannot be read, it is halved down to the saga that is
 * the cause, whose round has then failed: it backs off, blocks no other saga, and finally needs attention.
 */
export function createSagaClaims(deps: ClaimDeps): (options: SagaClaim) => Promise<readonly LeasedSaga[]> {
  const claims: Claims = {
    ...deps,
    definitions: createDefinitions(deps.db),
    cursor: createClaimCursor<Date>(deps.worker.clock, { isAdaptive: false }),
    maxRows: Number.POSITIVE_INFINITY,
  };
  return async (options) => {
    for (;;) {
      const leased = await tryClaim(claims, { ...options, limit: Math.min(options.limit, claims.maxRows) });
      if (leased !== null) return leased;
    }
  };
}

/** Null if fewer sagas are to be tried at once. */
async function tryClaim(claims: Claims, options: SagaClaim): Promise<readonly LeasedSaga[] | null> {
  const claimed = await claimRows(claims, options);
  if (claimed === null) return null;
  const { db, time, cursor } = claims;
  const { lease, rows } = claimed;
  const [first] = rows;
  if (first === undefined) return [];
  time.note(first.now_ms);
  const taken = rows.slice(0, countFitting(rows, options.bytes));
  const rest = rows.slice(taken.length);
  claims.maxRows = rest.length > 0 ? taken.length : claims.maxRows * 2;
  if (rest.length > 0) {
    await releaseSagas(db, lease, rest.map(asBefore)).catch(async (error: unknown) => {
      cursor.reset();
      await tryRelease(claims, lease, rows.map(asBefore));
      throw error;
    });
    cursor.rewind((taken.at(-1) ?? first).woken_at);
  }
  return readOrRelease(claims, taken, lease);
}

async function claimRows(claims: Claims, options: SagaClaim): Promise<Claimed<ClaimedRow> | null> {
  let isFromStart = true;
  try {
    if (options.alone) return await claimAfter(claims, null, options);
    return await claims.cursor.claim(async (after) => {
      isFromStart = after === null;
      const claimed = await claimAfter(claims, after, options);
      const count = claimed.rows.length;
      const last = claimed.rows.at(-1)?.woken_at ?? null;
      return { ...claimed, last, count, isFull: count === options.limit };
    });
  } catch (error) {
    if (halve(claims, options.limit, error)) return null;
    // The whole statement was rolled back, so the first saga is still due. A claim from the start shows which one it is.
    if (faultOf(error) === 'values') {
      if (!isFromStart) return null;
      await failFirst(claims, options, error);
    }
    throw error;
  }
}

/** What is no larger is returned by the claim itself. */
const inlineBytes = 16_384;

/**
 * The size in memory, not on disk: uncompressed (merging with an empty document uncompresses a document), or as text,
 * with every number printed in full. A value that is too large already is not printed.
 */
const uncompressedOf = (json: Sql): Sql => sql`pg_column_size(${json} || '{}')`;
const bytesOf = (json: Sql): Sql => sql`
  CASE WHEN ${uncompressedOf(json)} > ${MAX_JSON_BYTES} THEN ${uncompressedOf(json)}
       ELSE GREATEST(${uncompressedOf(json)}, octet_length(${json}::text)) END`;
const bytes: Sql = sql`(COALESCE(${bytesOf(sql`t.payload`)}, 0) + ${bytesOf(sql`t.step_outputs`)})`;

/** A value that is large on disk is not uncompressed to find out. */
const isInline: Sql = sql`(
  COALESCE(pg_column_size(t.payload), 0) + pg_column_size(t.step_outputs) <= ${inlineBytes} AND ${bytes} <= ${inlineBytes})`;

function claimAfter(
  { worker }: Claims,
  after: Date | null,
  { limit, leaseMs, alone }: SagaClaim,
): Promise<Claimed<ClaimedRow>> {
  return claim<ClaimedRow>(worker, sagas, {
    ...dueAfter(after, alone),
    limit,
    leaseMs,
    was: sql`, t.wake_at AS woken_at`,
    returning: sql`
      ${sagaHeads}, ${bytes} AS bytes, ${isInline} AS is_inline, picked.woken_at,
      CASE WHEN ${isInline} THEN ${payload} END AS payload,
      CASE WHEN ${isInline} THEN t.step_outputs END AS step_outputs,
      date_part('epoch', clock_timestamp()) * 1000 AS now_ms`,
    rowOrder: sql`woken_at, id`,
  });
}

const minId = '00000000-0000-0000-0000-000000000000';

/**
 * Due sagas in the order of their index. The cursor is compared with both columns: with a bound on `wake_at` alone, the
 * planner assumes that few rows lie between the two bounds, and reads and sorts all due sagas for every claim.
 */
function dueAfter(after: Date | null, alone: boolean): Pick<ClaimOptions, 'where' | 'orderBy' | 'set'> {
  return {
    where: sql`
      t.wake_at <= now()
      AND ${after === null ? sql`true` : sql`(t.wake_at, t.id) >= (${after}::timestamptz, ${minId}::uuid)`}
      AND ${alone ? sql`t.runs_alone` : sql`NOT t.runs_alone`}`,
    orderBy: sql`t.wake_at, t.id`,
    set: sql`wake_at = NULL, updated_at = now()`,
  };
}

type Unreadable = Pick<SagaRow, 'id' | 'failed_rounds'>;

/** Claims only the id of the first due saga, which could not be claimed with its values. */
async function failFirst(claims: Claims, { leaseMs, alone }: SagaClaim, error: unknown): Promise<void> {
  const { lease, rows } = await claim<Unreadable>(claims.worker, sagas, {
    ...dueAfter(null, alone),
    limit: 1,
    leaseMs,
    returning: sql`t.id, t.failed_rounds`,
  });
  const [first] = rows;
  if (first !== undefined) await failUnreadable(claims, lease, first, error);
}

async function failUnreadable({ db }: Claims, lease: Lease, saga: Unreadable, error: unknown): Promise<void> {
  // If this fails too, the lease expires.
  await releaseUnreadable(db, lease, saga, messageOf(error)).catch(() => {});
  throw new Error(`saga ${saga.id} cannot be read: ${messageOf(error)}`, { cause: error });
}

/** The next claim asks for half as many. Returns whether to claim again at once, because one of the sagas is the cause. */
function halve(claims: Claims, count: number, error: unknown): boolean {
  claims.cursor.reset();
  claims.maxRows = Math.max(1, count >> 1);
  return isCausedBySaga(error) && count > 1;
}

/** The error may pass; until then other sagas are claimed. */
const failedReadPauseMs = 1000;

/** Null if fewer sagas are to be tried at once. */
async function readOrRelease(
  claims: Claims,
  taken: readonly ClaimedRow[],
  lease: Lease,
): Promise<readonly LeasedSaga[] | null> {
  try {
    return await readRows(claims, taken, lease);
  } catch (error) {
    const [first] = taken;
    const isHalved = halve(claims, taken.length, error);
    if (taken.length === 1 && first !== undefined) {
      if (isCausedBySaga(error)) await failUnreadable(claims, lease, first, error);
      await tryRelease(claims, lease, [{ id: first.id, pauseMs: failedReadPauseMs }]);
    } else await tryRelease(claims, lease, taken.map(asBefore));
    if (isHalved) return null;
    throw error;
  }
}

/** Sagas with a definition of a newer version are left to newer processes for this long. */
const unknownVersionPauseMs = 30_000;

async function readRows(
  { db, definitions }: Claims,
  rows: readonly ClaimedRow[],
  lease: Lease,
): Promise<readonly LeasedSaga[]> {
  const [bodies, logs, workflows] = await Promise.all([
    readBodies(db, rows, lease.epoch),
    readLogs(db, rows),
    definitions.read(new Set(rows.map((row) => row.definition_hash))),
  ]);
  const unknown = rows.filter((row) => !workflows.has(row.definition_hash));
  if (unknown.length > 0) {
    const releases = unknown.map(({ id }) => ({ id, pauseMs: unknownVersionPauseMs }));
    await releaseSagas(db, lease, releases);
  }
  return rows.flatMap((row) => {
    const workflow = workflows.get(row.definition_hash);
    const body = row.is_inline ? row : bodies.get(row.id);
    if (workflow === undefined || body === undefined) return [];
    return [leasedSaga({ ...row, ...bodyOf(body) }, { workflow, lease, log: logs.get(row.id) ?? [] })];
  });
}

/** If this fails, the leases expire. */
function tryRelease({ db }: Claims, lease: Lease, releases: readonly Release[]): Promise<void> {
  return releaseSagas(db, lease, releases).catch(() => {});
}

/** Not by the database or its configuration, which affect all sagas. */
function isCausedBySaga(error: unknown): boolean {
  const fault = faultOf(error);
  return fault === 'values' || fault === 'ours';
}

function countFitting(rows: readonly ClaimedRow[], maxBytes: number): number {
  let sum = 0;
  const tooMany = rows.findIndex((row, index) => {
    sum += row.bytes;
    return index > 0 && sum > maxBytes;
  });
  return tooMany < 0 ? rows.length : tooMany;
}

const asBefore = ({ id, woken_at }: ClaimedRow): Release => ({ id, dueAt: woken_at });

/**
 * Milliseconds until the next saga is due; null if none is scheduled. Sagas that have been due for long are locked by
 * somebody; the next claim finds them soon enough.
 */
export async function nextDueInMs({ db, time }: Pick<ClaimDeps, 'db' | 'time'>): Promise<number | null> {
  const [row] = await db.query<{ due_in_ms: number | null; now_ms: number }>(sql`
    SELECT date_part('epoch', min(wake_at) - clock_timestamp()) * 1000 AS due_in_ms,
           date_part('epoch', clock_timestamp()) * 1000 AS now_ms
    FROM saga.saga_states WHERE wake_at > now() - interval '2 seconds' AND NOT runs_alone`);
  if (row !== undefined) time.note(row.now_ms);
  return row?.due_in_ms ?? null;
}

/** Milliseconds until the first of all sagas is due, also of those that are overdue or run alone. */
export async function firstDueInMs(db: Database): Promise<number | null> {
  const [row] = await db.query<{ due_in_ms: number }>(sql`
    SELECT date_part('epoch', wake_at - clock_timestamp()) * 1000 AS due_in_ms
    FROM saga.saga_states WHERE wake_at IS NOT NULL ORDER BY wake_at, id LIMIT 1`);
  return row?.due_in_ms ?? null;
}

/** Whether a saga is due that runs alone, while no process runs one: only one process at a time makes room. */
export async function hasDueAlone(db: Database): Promise<boolean> {
  const [row] = await db.query<{ has_alone: boolean }>(sql`
    SELECT EXISTS (SELECT 1 FROM saga.saga_states WHERE runs_alone AND wake_at <= now())
       AND NOT EXISTS (SELECT 1 FROM saga.saga_states WHERE runs_alone AND lease_owner IS NOT NULL) AS has_alone`);
  return row?.has_alone === true;
}
