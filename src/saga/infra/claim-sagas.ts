import { messageOf } from '../../kernel/errors.ts';
import type { Lease } from '../../kernel/lease.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import {
  claim,
  type Claimed,
  type ClaimOptions as WorkClaim,
  type Worker,
} from '../../platform/postgres/work.ts';
import type { ClaimOptions, HeldSaga } from '../usecase/ports.ts';
import { createClaimMark } from './claim-mark.ts';
import type { DatabaseClock } from './database-clock.ts';
import { faultOf } from './fault-of.ts';
import { giveBack, giveBackUnread, type GivenBack } from './give-back.ts';
import {
  bodyOf,
  createDefinitions,
  heldSaga,
  payload,
  readBodies,
  readLogs,
  type ClaimedRow,
} from './read-sagas.ts';
import { sagaHeads, sagas, type SagaRow } from './saga-rows.ts';

export type SagaClaimDeps = Readonly<{ db: Database; worker: Worker; time: DatabaseClock }>;

/** A saga that cannot be read here is left to others for so long. */
const unreadablePauseMs = 30_000;
const failedReadPauseMs = 1000;

/** What is no larger comes with the claim. */
const inlineBytes = 16_384;

/** As it is in memory, not as it is stored: a document that is merged with an empty one is unpacked, and no more. */
const bytes: Sql = sql`(COALESCE(pg_column_size(t.payload || '{}'), 0) + pg_column_size(t.step_outputs || '{}'))`;

/** What is large as it is stored is not unpacked for this. */
const isInline: Sql = sql`(
  COALESCE(pg_column_size(t.payload), 0) + pg_column_size(t.step_outputs) <= ${inlineBytes} AND ${bytes} <= ${inlineBytes})`;

/**
 * Claims what is due, oldest first. What is large is read in a second statement, and only as much as there is room
 * for; what was claimed beyond that is given back at once, and the next claim asks for less. So does the one after a
 * claim that could not be read, down to the saga that is to blame: it stays away longer and longer, keeps nobody, and
 * ends in front of a person.
 */
export function createSagaClaims({ db, worker, time }: SagaClaimDeps) {
  const definitions = createDefinitions(db);
  const mark = createClaimMark(worker.clock);
  let mostAtOnce = Number.POSITIVE_INFINITY;

  const takeFrom = (from: Date | null, { limit, leaseMs, lane }: ClaimOptions) =>
    claim<ClaimedRow>(worker, sagas, {
      ...dueOf(from, lane),
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

  const take = async (from: Date | null, options: ClaimOptions) => {
    const claimed = await takeFrom(from, options);
    return claimed.rows.length > 0 || from === null ? claimed : takeFrom(null, options);
  };

  /** The first that is due, with nothing of it but its name: it could not be claimed with all the rest. */
  const setBackFirst = async ({ leaseMs, lane }: ClaimOptions, error: unknown): Promise<void> => {
    const { lease, rows } = await claim<Blamed>(worker, sagas, {
      ...dueOf(null, lane),
      limit: 1,
      leaseMs,
      returning: sql`t.id, t.setbacks`,
    });
    const [first] = rows;
    if (first !== undefined) await blame(lease, first, error);
  };

  const blame = async (lease: Lease, saga: Blamed, error: unknown): Promise<void> => {
    // Where not even that can be done, its lease runs out.
    await giveBackUnread(db, lease, saga, messageOf(error)).catch(() => {});
    throw new Error(`saga ${saga.id} cannot be read: ${messageOf(error)}`, { cause: error });
  };

  const read = async (rows: readonly ClaimedRow[], lease: Lease): Promise<readonly HeldSaga[]> => {
    const [bodies, logs, workflows] = await Promise.all([
      readBodies(db, rows, lease.epoch),
      readLogs(db, rows),
      definitions.read(new Set(rows.map((row) => row.definition_hash))),
    ]);
    const unreadable = rows.filter((row) => !workflows.has(row.definition_hash));
    if (unreadable.length > 0)
      await giveBack(
        db,
        lease,
        unreadable.map(({ id }) => ({ id, pauseMs: unreadablePauseMs })),
      );
    return rows.flatMap((row) => {
      const workflow = workflows.get(row.definition_hash);
      const body = row.is_inline ? row : bodies.get(row.id);
      if (workflow === undefined || body === undefined) return [];
      return [heldSaga({ ...row, ...bodyOf(body) }, { workflow, lease, log: logs.get(row.id) ?? [] })];
    });
  };

  /** The next claim asks for less. Whether that may be at once: it is one of these sagas that is to blame. */
  const isWorthHalving = (count: number, error: unknown): boolean => {
    mark.note(undefined);
    mostAtOnce = Math.max(1, count >> 1);
    return isFaultOfSaga(error) && count > 1;
  };

  /** Null where less is to be tried at once. */
  const readTaken = async (
    taken: readonly ClaimedRow[],
    lease: Lease,
  ): Promise<readonly HeldSaga[] | null> => {
    try {
      return await read(taken, lease);
    } catch (error) {
      const [first] = taken;
      const isHalved = isWorthHalving(taken.length, error);
      if (taken.length === 1 && first !== undefined) {
        if (isFaultOfSaga(error)) await blame(lease, first, error);
        await letGo(lease, [{ id: first.id, pauseMs: failedReadPauseMs }]);
      } else await letGo(lease, taken.map(asItWas));
      if (isHalved) return null;
      throw error;
    }
  };

  /** Where not even that can be done, their leases run out. */
  const letGo = (lease: Lease, back: readonly GivenBack[]): Promise<void> =>
    giveBack(db, lease, back).catch(() => {});

  const takeSome = async (options: ClaimOptions): Promise<Claimed<ClaimedRow> | null> => {
    const from = options.lane === 'alone' ? null : mark.from();
    try {
      return await take(from, options);
    } catch (error) {
      if (isWorthHalving(options.limit, error)) return null;
      // The database has refused it as a whole, so the first is still due. Which one that is, is seen from the beginning.
      if (faultOf(error) === 'values') {
        if (from !== null) return null;
        await setBackFirst(options, error);
      }
      throw error;
    }
  };

  /** Null where less is to be tried at once. */
  const tryClaim = async (options: ClaimOptions): Promise<readonly HeldSaga[] | null> => {
    const claimed = await takeSome(options);
    if (claimed === null) return null;
    const { lease, rows } = claimed;
    mark.note(undefined);
    const [first] = rows;
    if (first === undefined) return [];
    time.note(first.now_ms);
    const taken = rows.slice(0, countFitting(rows, options.bytes));
    const rest = rows.slice(taken.length);
    mostAtOnce = rest.length > 0 ? taken.length : mostAtOnce * 2;
    if (rest.length > 0)
      await giveBack(db, lease, rest.map(asItWas)).catch(async (error: unknown) => {
        await letGo(lease, rows.map(asItWas));
        throw error;
      });
    const held = await readTaken(taken, lease);
    if (held !== null && options.lane === 'together' && rows.length === options.limit)
      mark.note(taken.at(-1)?.woken_at);
    return held;
  };

  return async (options: ClaimOptions): Promise<readonly HeldSaga[]> => {
    for (;;) {
      const held = await tryClaim({ ...options, limit: Math.min(options.limit, mostAtOnce) });
      if (held !== null) return held;
    }
  };
}

const leastId = '00000000-0000-0000-0000-000000000000';

/**
 * What is due in a lane, in the order of its index. With `from` as a bound of the first column alone, the planner takes
 * the two bounds for a narrow range where it knows nothing of the times: it would read and sort all that is due for
 * every claim.
 */
const dueOf = (
  from: Date | null,
  lane: ClaimOptions['lane'],
): Pick<WorkClaim, 'where' | 'orderBy' | 'set'> => ({
  where: sql`
    t.wake_at <= now()
    AND ${from === null ? sql`true` : sql`(t.wake_at, t.id) >= (${from}::timestamptz, ${leastId}::uuid)`}
    AND ${lane === 'alone' ? sql`t.runs_alone` : sql`NOT t.runs_alone`}`,
  orderBy: sql`t.wake_at, t.id`,
  set: sql`wake_at = NULL, updated_at = now()`,
});

type Blamed = Pick<SagaRow, 'id' | 'setbacks'>;

/** Not of the database, nor of how it is set up: those would be the fault of all of them. */
function isFaultOfSaga(error: unknown): boolean {
  const fault = faultOf(error);
  return fault === 'values' || fault === 'ours';
}

function countFitting(rows: readonly ClaimedRow[], most: number): number {
  let sum = 0;
  const tooMuch = rows.findIndex((row, index) => {
    sum += row.bytes;
    return index > 0 && sum > most;
  });
  return tooMuch < 0 ? rows.length : tooMuch;
}

const asItWas = ({ id, woken_at }: ClaimedRow): GivenBack => ({ id, dueAt: woken_at });
