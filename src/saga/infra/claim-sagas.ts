import type { Lease } from '../../kernel/lease.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { rowsOf, type Column } from '../../platform/postgres/rows-of.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { isOutage } from '../../platform/postgres/sqlstate.ts';
import { claim, type Worker } from '../../platform/postgres/work.ts';
import { MOST_SETBACKS } from '../domain/setbacks.ts';
import type { Workflow } from '../domain/workflow.ts';
import { fromStored } from '../domain/workflow-hash.ts';
import type { ClaimOptions, HeldSaga } from '../usecase/ports.ts';
import { createClaimMark } from './claim-mark.ts';
import type { DatabaseClock } from './database-clock.ts';
import {
  isActive,
  logHeads,
  logOrder,
  sagaHeads,
  sagas,
  stateOf,
  type LogRow,
  type SagaRow,
} from './saga-rows.ts';

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

/** Nothing more is called with it once a person is to be asked: and it may be what takes the process down. */
const payload: Sql = sql`CASE WHEN t.setbacks < ${MOST_SETBACKS} THEN t.payload END`;

type ClaimedRow = SagaRow & Readonly<{ now_ms: number; bytes: number; is_inline: boolean; woken_at: Date }>;

/**
 * Claims what is due, oldest first. What is large is read in a second statement, and only as much as there is room
 * for; what was claimed beyond that is given back at once, and the next claim asks for less. So does the one after a
 * claim that could not be read, down to the saga that is to blame: it stays away for a while, and keeps nobody.
 */
export function createSagaClaims({ db, worker, time }: SagaClaimDeps) {
  const definitions = createDefinitions(db);
  const mark = createClaimMark(worker.clock);
  let mostAtOnce = Number.POSITIVE_INFINITY;

  const takeFrom = (from: Date | null, { limit, leaseMs, lane }: ClaimOptions) =>
    claim<ClaimedRow>(worker, sagas, {
      where: sql`
        t.wake_at <= now() AND ${from === null ? sql`true` : sql`t.wake_at >= ${from}`}
        AND ${lane === 'alone' ? sql`t.runs_alone` : sql`NOT t.runs_alone`}`,
      orderBy: sql`t.wake_at, t.id`,
      limit,
      leaseMs,
      was: sql`, t.wake_at AS woken_at`,
      set: sql`wake_at = NULL`,
      returning: sql`
        ${sagaHeads}, ${bytes} AS bytes, ${isInline} AS is_inline, picked.woken_at,
        CASE WHEN ${isInline} THEN ${payload} END AS payload,
        CASE WHEN ${isInline} THEN t.step_outputs END AS step_outputs,
        date_part('epoch', clock_timestamp()) * 1000 AS now_ms`,
      rowOrder: sql`woken_at, id`,
    });

  const take = async (options: ClaimOptions) => {
    const from = options.lane === 'alone' ? null : mark.from();
    const claimed = await takeFrom(from, options);
    return claimed.rows.length > 0 || from === null ? claimed : takeFrom(null, options);
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

  return async (options: ClaimOptions): Promise<readonly HeldSaga[]> => {
    const limit = Math.min(options.limit, mostAtOnce);
    const { lease, rows } = await take({ ...options, limit });
    mark.note(undefined);
    const [first] = rows;
    if (first === undefined) return [];
    time.note(first.now_ms);
    const taken = rows.slice(0, countFitting(rows, options.bytes));
    const rest = rows.slice(taken.length);
    mostAtOnce = rest.length > 0 ? taken.length : mostAtOnce * 2;
    try {
      if (rest.length > 0) await giveBack(db, lease, rest.map(asItWas));
      const held = await read(taken, lease);
      if (options.lane === 'together' && rows.length === limit) mark.note(taken.at(-1)?.woken_at);
      return held;
    } catch (error) {
      mostAtOnce = Math.max(1, taken.length >> 1);
      const culprit = { id: first.id, pauseMs: failedReadPauseMs, isSetback: !isOutage(error) };
      // Where not even that can be done, their leases run out.
      await giveBack(db, lease, taken.length === 1 ? [culprit] : taken.map(asItWas)).catch(() => {});
      throw error;
    }
  };
}

function countFitting(rows: readonly ClaimedRow[], most: number): number {
  let sum = 0;
  const tooMuch = rows.findIndex((row, index) => {
    sum += row.bytes;
    return index > 0 && sum > most;
  });
  return tooMuch < 0 ? rows.length : tooMuch;
}

type Body = Pick<SagaRow, 'payload' | 'step_outputs'>;

const bodyOf = ({ payload, step_outputs }: Body): Body => ({ payload, step_outputs });

async function readBodies(
  db: Database,
  rows: readonly ClaimedRow[],
  epoch: bigint,
): Promise<ReadonlyMap<string, Body>> {
  const large = rows.filter((row) => !row.is_inline).map(({ id }) => id);
  if (large.length === 0) return new Map();
  const bodies = await db.query<Body & { id: string }>(sql`
    SELECT t.id, ${payload} AS payload, t.step_outputs
    FROM ${rowsOf(sql`large`, large, [[sql`id`, sql`uuid[]`, (id) => id]])}
    JOIN saga.saga_states t ON t.id = large.id AND t.lease_epoch = ${epoch}`);
  return new Map(bodies.map((body) => [body.id, body]));
}

/** Without the answers: those of the actions are in the saga itself, and nobody needs those of the undos. */
async function readLogs(
  db: Database,
  rows: readonly ClaimedRow[],
): Promise<ReadonlyMap<string, readonly LogRow[]>> {
  const begun = rows.filter(({ status }) => status !== 'STARTED').map(({ id }) => id);
  if (begun.length === 0) return new Map();
  const logs = await db.query<LogRow>(sql`
    SELECT ${logHeads}
    FROM ${rowsOf(sql`begun`, begun, [[sql`id`, sql`uuid[]`, (id) => id]])}
    JOIN saga.saga_step_logs l ON l.saga_id = begun.id
    ORDER BY ${logOrder}`);
  return Map.groupBy(logs, (row) => row.saga_id);
}

function heldSaga(
  row: ClaimedRow,
  { workflow, lease, log }: Readonly<{ workflow: Workflow; lease: Lease; log: readonly LogRow[] }>,
): HeldSaga {
  const answered = log.map((entry) => ({
    ...entry,
    response_payload:
      entry.action === 'EXECUTE' ? row.step_outputs[workflow.steps[entry.step_index]?.name ?? ''] : null,
  }));
  return {
    id: row.id,
    workflow,
    payload: row.payload,
    startedAt: row.created_at.getTime(),
    trace: row.trace,
    state: stateOf(row, answered),
    wasLost: row.lease_lost,
    setbacks: row.setbacks,
    runsAlone: row.runs_alone,
    bytes: row.bytes + log.reduce((sum, { error_message }) => sum + (error_message?.length ?? 0), 0),
    lease,
  };
}

/** Due at a time, or after a pause; as a setback, where it came to nothing through its own fault. */
type GivenBack = Readonly<{ id: string; dueAt?: Date; pauseMs?: number; isSetback?: boolean }>;

const asItWas = ({ id, woken_at }: ClaimedRow): GivenBack => ({ id, dueAt: woken_at });

const givenBackColumns: readonly Column<GivenBack>[] = [
  [sql`id`, sql`uuid[]`, ({ id }) => id],
  [sql`due_at`, sql`timestamptz[]`, ({ dueAt }) => dueAt ?? null],
  [sql`pause_ms`, sql`float8[]`, ({ pauseMs }) => pauseMs ?? 0],
  [sql`setbacks`, sql`int[]`, ({ isSetback }) => (isSetback === true ? 1 : 0)],
];

/** Lets go what was claimed and cannot be driven here, or not now. The mark of a lost worker stays. */
export async function giveBack(
  db: Database,
  { epoch }: Pick<Lease, 'epoch'>,
  back: readonly GivenBack[],
): Promise<void> {
  await db.query(sql`
    UPDATE saga.saga_states t
    SET lease_owner = NULL, lease_until = NULL, setbacks = t.setbacks + back.setbacks,
        wake_at = COALESCE(back.due_at, clock_timestamp() + back.pause_ms * interval '1 millisecond')
    FROM ${rowsOf(sql`back`, back, givenBackColumns)}
    WHERE t.id = back.id AND t.lease_epoch = ${epoch} AND t.lease_owner IS NOT NULL AND ${isActive}
      AND NOT t.needs_person`);
}

/** Definitions never change, so each is read once. */
function createDefinitions(db: Database) {
  const known = new Map<string, Workflow>();
  return {
    async read(hashes: ReadonlySet<string>): Promise<ReadonlyMap<string, Workflow>> {
      const missing = [...hashes].filter((hash) => !known.has(hash));
      if (missing.length > 0) {
        const rows = await db.query<{ hash: string; definition: unknown }>(sql`
          SELECT hash, definition FROM saga.workflow_definitions WHERE hash = ANY(${missing}::text[])`);
        for (const { hash, definition } of rows) {
          const workflow = readDefinition(definition);
          if (workflow !== null) known.set(hash, workflow);
        }
      }
      return known;
    },
  };
}

/** Null for what a later version has written: its sagas are for those who understand it. */
function readDefinition(definition: unknown): Workflow | null {
  try {
    return fromStored(definition);
  } catch {
    return null;
  }
}
