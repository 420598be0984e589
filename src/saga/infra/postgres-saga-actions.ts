import assert from 'node:assert/strict';
import { cleanText } from '../../kernel/text.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { notify } from '../../platform/postgres/wake.ts';
import type { Circumstances, Settlement } from '../domain/decide.ts';
import { decidePerson, type PersonAct, type PersonRefusal } from '../domain/decide-person.ts';
import { requestAbort } from '../domain/request-abort.ts';
import { withKnown, type Person, type Status } from '../domain/saga-state.ts';
import { fromStored } from '../domain/workflow-hash.ts';
import type { Workflow } from '../domain/workflow.ts';
import type { AbortDeps, AbortResult, AbortWish } from '../usecase/abort-saga.ts';
import type { ActDeps, StepAct, StepActResult } from '../usecase/act-on-step.ts';
import type { HeldSaga } from '../usecase/ports.ts';
import { adoptSaga, findAdoption, type Adoption } from './adopt-saga.ts';
import {
  logColumns,
  logOrder,
  sagaChannel,
  sagaColumns,
  stateOf,
  type LogRow,
  type SagaRow,
} from './saga-rows.ts';
import { isDeadlineNews, settleSagas, type AddEvents } from './settle-sagas.ts';

export type SagaActionDeps = Readonly<{
  db: Database;
  serviceOf: Circumstances['serviceOf'];
  /** Null where nobody listens to events. */
  addEvents: AddEvents | null;
  /** Called when what a person did to a step is committed. */
  onSettled?: (before: KnownSaga, after: Settlement) => void;
}>;

type KnownSaga = Pick<HeldSaga, 'id' | 'workflow' | 'state'>;

const maxReasonBytes = 1000;

export function createPostgresSagaActions(deps: SagaActionDeps): AbortDeps['aborts'] & ActDeps['steps'] {
  const { db } = deps;
  return {
    request: (sagaId, wish) => db.transaction((tx) => requestIn(tx, sagaId, cleaned(wish))),
    async act(sagaId, act) {
      const acted = await db.transaction((tx) => actIn(deps, tx, sagaId, cleaned(act)));
      if (acted.outcome !== 'settled') return acted;
      deps.onSettled?.(acted.before, acted.after);
      return { outcome: 'done', status: acted.after.state.status };
    },
  };
}

function cleaned<Asked extends Readonly<{ by: Person }>>(asked: Asked): Asked {
  const { actor, reason } = asked.by;
  return { ...asked, by: { actor, reason: cleanText(reason, maxReasonBytes) } };
}

async function requestIn(tx: Queryable, sagaId: string, wish: AbortWish): Promise<AbortResult> {
  const stored = await storeAbort(tx, sagaId, wish);
  if (stored !== null) return stored;
  const found = await lockSaga(tx, sagaId);
  if (found === null) {
    const ended = await archivedStatus(tx, sagaId);
    return ended === null
      ? { outcome: 'not_found' }
      : { outcome: 'refused', status: ended, message: hasEnded(ended) };
  }
  const { status } = found;
  const ruled = requestAbort(stateOf(found, []), { ...wish, at: 0 });
  if (ruled.outcome !== 'stored') return { ...ruled, status };
  const flaw = await adoptForAbort(tx, found);
  if (flaw !== null) return { outcome: 'refused', status, message: flaw };
  // Where it has a definition, it was committed a moment ago, after the update had looked for it. Now it is locked.
  const late = await storeAbort(tx, sagaId, wish);
  assert(late !== null, 'a saga that is locked and may be aborted can be');
  return late;
}

/** Why a saga without a definition cannot be undone, or null where it has one now. */
async function adoptForAbort(tx: Queryable, found: FoundSaga): Promise<string | null> {
  if (found.definition !== null) return null;
  const adoption = await findAdoption(tx, found, await readLog(tx, found.id));
  if ('flaw' in adoption) return adoption.flaw;
  if (adoption.isPivotOpened) return 'the saga is beyond its pivot and can only go forward';
  await adoptSaga(tx, found.id, adoption);
  return null;
}

/**
 * The rule of request-abort.ts in one statement, so that it needs no lock before. Neither status, lease nor epoch
 * change. Whoever holds the saga finds the wish when it settles, and a saga that is held must not be claimed beside
 * it: only one that nobody holds is woken. Where a person was asked, the row of setbacks has ended.
 */
async function storeAbort(
  tx: Queryable,
  sagaId: string,
  { kind, by: { actor, reason } }: AbortWish,
): Promise<Readonly<{ outcome: 'stored'; status: Status }> | null> {
  const [row] = await tx.query<{ status: Status }>(sql`
    UPDATE saga.saga_states
    SET abort_requested = ${kind}, abort_actor = ${actor}, abort_reason = ${reason}, abort_at = clock_timestamp(),
        wake_at = CASE WHEN lease_owner IS NULL THEN now() END,
        needs_person = false, stuck_step = NULL, stuck_op = NULL, stuck_reason = NULL,
        setbacks = CASE WHEN needs_person THEN 0 ELSE setbacks END, runs_alone = runs_alone AND NOT needs_person
    WHERE id = ${sagaId} AND status IN ('STARTED', 'RUNNING') AND NOT pivot_opened AND abort_requested IS NULL
      AND definition_hash IS NOT NULL
    RETURNING status`);
  if (row === undefined) return null;
  await notify(tx, sagaChannel);
  return { outcome: 'stored', status: row.status };
}

type FoundSaga = SagaRow & Readonly<{ definition: unknown }>;

async function lockSaga(tx: Queryable, sagaId: string): Promise<FoundSaga | null> {
  const [row] = await tx.query<FoundSaga>(sql`
    SELECT ${sagaColumns}, d.definition
    FROM saga.saga_states t LEFT JOIN saga.workflow_definitions d ON d.hash = t.definition_hash
    WHERE t.id = ${sagaId}
    FOR UPDATE OF t`);
  return row ?? null;
}

async function archivedStatus(tx: Queryable, sagaId: string): Promise<Status | null> {
  const [row] = await tx.query<{ status: Status }>(sql`
    SELECT status FROM saga.saga_states_archive WHERE id = ${sagaId}`);
  return row?.status ?? null;
}

type Acted =
  | Exclude<StepActResult, Readonly<{ outcome: 'done' }>>
  | Readonly<{ outcome: 'settled'; before: KnownSaga; after: Settlement }>;

async function actIn(deps: SagaActionDeps, tx: Queryable, sagaId: string, act: StepAct): Promise<Acted> {
  const found = await lockSaga(tx, sagaId);
  if (found === null) {
    const ended = await archivedStatus(tx, sagaId);
    return ended === null ? { outcome: 'not_found', what: 'saga' } : refuse('conflict', hasEnded(ended));
  }
  const log = await readLog(tx, sagaId);
  const adoption = found.definition === null ? await findAdoption(tx, found, log) : null;
  if (adoption !== null && 'flaw' in adoption) return refuse('conflict', adoption.flaw);
  const workflow = adoption?.workflow ?? fromStored(found.definition);
  const step = workflow.steps.findIndex(({ name }) => name === act.stepName);
  if (step < 0) return { outcome: 'not_found', what: 'step' };
  if (act.kind === 'resolve' && act.outcome === 'not_done' && found.stuck_op === 'COMPENSATE')
    return refuse('semantic', 'an undo that is resolved is done: retry it, or undo it by hand first');
  const asked = { ...act, step };
  const saga = { found, workflow, adoption, log };
  const { now, isOver } = await readClock(tx, sagaId);
  const done =
    (await settleAct(deps, tx, saga, { asked, now, isOver })) ??
    // The deadline ended between the two looks at the clock. Nothing else can have changed: the saga is locked.
    (await settleAct(deps, tx, saga, { asked, now, isOver: true }));
  assert(done !== null, 'a saga that is locked and known in full can be settled');
  return done;
}

async function readLog(tx: Queryable, sagaId: string): Promise<readonly LogRow[]> {
  return tx.query<LogRow>(sql`
    SELECT ${logColumns} FROM saga.saga_step_logs l WHERE l.saga_id = ${sagaId}
    ORDER BY ${logOrder}`);
}

/** Read after the saga was locked: whoever waited for it acts on the time at which it got it. */
async function readClock(tx: Queryable, sagaId: string): Promise<Readonly<{ now: number; isOver: boolean }>> {
  const [row] = await tx.query<{ now_ms: number; is_over: boolean }>(sql`
    SELECT date_part('epoch', clock_timestamp()) * 1000 AS now_ms,
           t.deadline_over OR (${isDeadlineNews}) IS TRUE AS is_over
    FROM saga.saga_states t WHERE t.id = ${sagaId}`);
  assert(row !== undefined, 'a saga that is locked is there');
  return { now: Math.round(row.now_ms), isOver: row.is_over };
}

type LockedSaga = Readonly<{
  found: FoundSaga;
  workflow: Workflow;
  /** Where it was begun without a definition. */
  adoption: Adoption | null;
  log: readonly LogRow[];
}>;

/** Null where the deadline is over and was not known to be. */
async function settleAct(
  { db, serviceOf, addEvents }: SagaActionDeps,
  tx: Queryable,
  { found, workflow, adoption, log }: LockedSaga,
  { asked, now, isOver }: Readonly<{ asked: PersonAct; now: number; isOver: boolean }>,
): Promise<Acted | null> {
  const { id } = found;
  const read = stateOf(found, log);
  const known = { abort: read.abort, isDeadlineOver: isOver };
  const around = { now, random: Math.random, serviceOf };
  const before = { id, workflow, state: withKnown(read, known) };
  const decided = decidePerson(workflow, before.state, asked, around);
  if (decided.outcome === 'refused') return decided;
  const { state, changed, added, events } = decided;
  if (adoption !== null) await adoptSaga(tx, id, adoption);
  const lease = { owner: person, epoch: await takeOver(tx, id), endsAtMs: 0 };
  const inTransaction: Database = { ...db, ...tx, transaction: (work) => work(tx) };
  const settled = await settleSagas(
    inTransaction,
    [{ saga: { id, lease, workflow }, known, state, changed, added, events, keepsLease: false }],
    addEvents,
  );
  if (!settled.has(id)) return null;
  if (state.wakeAt !== null) await notify(tx, sagaChannel);
  return { outcome: 'settled', before, after: decided };
}

/** Nobody sees this owner: the settle that follows in the same transaction lets the saga go. */
const person = 'a person';

/** The new epoch shuts out whoever still thinks that the saga is theirs. */
async function takeOver(tx: Queryable, sagaId: string): Promise<bigint> {
  const [row] = await tx.query<{ lease_epoch: bigint }>(sql`
    UPDATE saga.saga_states
    SET lease_owner = ${person}, lease_until = clock_timestamp(), lease_epoch = nextval('platform.lease_epochs')
    WHERE id = ${sagaId}
    RETURNING lease_epoch`);
  assert(row !== undefined, 'a saga that is locked is there');
  return row.lease_epoch;
}

function hasEnded(status: Status): string {
  return `the saga has ended: status=${status}`;
}

function refuse(kind: PersonRefusal['kind'], message: string): PersonRefusal {
  return { outcome: 'refused', kind, message };
}
