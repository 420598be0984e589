import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { fold } from '../domain/fold.ts';
import type { Status } from '../domain/saga-state.ts';
import { isPivotOpened } from '../domain/step-log.ts';
import { fromStored } from '../domain/workflow-hash.ts';
import type { Workflow } from '../domain/workflow.ts';
import { stateOf, type LogRow, type SagaRow } from './saga-rows.ts';

/**
 * A saga that was begun without a definition, by the system before ours, can go on with the workflow of its name that
 * is current when a person says how. Nothing is pinned before that, so a workflow that was registered wrongly can be
 * corrected until then.
 */
export type Adoption = Readonly<{ hash: string; workflow: Workflow; isPivotOpened: boolean }>;

/** The definition that fits what the saga has done so far, or why there is none. The saga is locked. */
export async function findAdoption(
  tx: Queryable,
  saga: SagaRow,
  log: readonly LogRow[],
): Promise<Adoption | Readonly<{ flaw: string }>> {
  const { id, workflow_name: name, status } = saga;
  const [current] = await tx.query<{ hash: string; definition: unknown }>(sql`
    SELECT d.hash, d.definition
    FROM saga.workflows w JOIN saga.workflow_definitions d ON d.hash = w.current_hash
    WHERE w.name = ${name}`);
  if (current === undefined)
    return { flaw: `the saga was begun without a definition: register the workflow ${name} first` };
  const { hash } = current;
  const workflow = fromStored(current.definition);
  const otherwise = `the workflow ${name} that is registered is not the one that this saga was begun with`;
  const [named] = await tx.query<{ step_index: number; step_name: string }>(sql`
    SELECT l.step_index, l.step_name
    FROM saga.saga_step_logs l
    WHERE l.saga_id = ${id} AND l.step_name <> ''
      AND l.step_name IS DISTINCT FROM (${workflow.steps.map((step) => step.name)}::text[])[l.step_index + 1]
    ORDER BY l.step_index LIMIT 1`);
  if (named !== undefined) {
    const { step_index: step, step_name: was } = named;
    const is = workflow.steps[step]?.name ?? 'not there';
    return { flaw: `${otherwise}: step ${step} was ${was} and is ${is}` };
  }
  const state = stateOf(saga, log);
  const folded = fold(workflow, state, state.log);
  if (!isReachedFrom(status, folded.status))
    return { flaw: `${otherwise}: by its log it would be ${folded.status} and is ${status}` };
  const moved = await moveQuestion(tx, saga, workflow);
  if (moved !== null) return { flaw: moved };
  return { hash, workflow, isPivotOpened: isPivotOpened(workflow, state.log) };
}

/**
 * Whether the log says where the saga stands, or that there is nothing left to do: the system before ours was stopped
 * before it wrote the end down. Then whatever a person does with its step ends it.
 */
function isReachedFrom(status: Status, folded: Status): boolean {
  if (folded === status) return true;
  return status === 'COMPENSATING' ? folded === 'FAILED' : status === 'RUNNING' && folded === 'COMPLETED';
}

/**
 * A saga that goes forward waits at the first step that it has not done, and where its workflow has no such step, at
 * the last one. Which of them it is depends on what is registered. Whoever has acted on the other one is told so and
 * may think again: with a workflow that lacks a step, the same act would be the end of the saga.
 */
async function moveQuestion(tx: Queryable, saga: SagaRow, { name, steps }: Workflow): Promise<string | null> {
  const { id, current_step: next, stuck_step: stuck, stuck_op: op } = saga;
  const step = Math.min(next, steps.length - 1);
  if (op !== 'EXECUTE' || stuck === step) return null;
  await tx.query(sql`
    UPDATE saga.saga_states SET stuck_step = ${step}
    WHERE id = ${id} AND needs_person AND definition_hash IS NULL`);
  const at = `it waits at ${steps[step]?.name ?? ''} now`;
  return next < steps.length
    ? `the workflow ${name} has got more steps since this saga was looked at: ${at}`
    : `by its log this saga has done every step of the workflow ${name}: ${at}, and a retry of that ends it`;
}

/**
 * From here on the saga is one of ours. That a step beyond its workflow may have been called was written down before
 * the workflow was known.
 */
export async function adoptSaga(tx: Queryable, sagaId: string, { hash, workflow }: Adoption): Promise<void> {
  await tx.query(sql`
    UPDATE saga.saga_states SET definition_hash = ${hash} WHERE id = ${sagaId} AND definition_hash IS NULL`);
  await tx.query(sql`
    DELETE FROM saga.saga_step_logs WHERE saga_id = ${sagaId} AND step_index >= ${workflow.steps.length}`);
  await tx.query(sql`
    UPDATE saga.saga_step_logs l
    SET step_name = (${workflow.steps.map((step) => step.name)}::text[])[l.step_index + 1]
    WHERE l.saga_id = ${sagaId} AND l.step_name = ''`);
}
