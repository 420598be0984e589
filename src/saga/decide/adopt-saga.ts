import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { fold } from '../domain/fold.ts';
import type { Status } from '../domain/saga-state.ts';
import { isPivotOpened } from '../domain/step-log.ts';
import { fromStored } from '../domain/workflow/workflow-hash.ts';
import type { Workflow } from '../domain/workflow/workflow.ts';
import { stateOf, type LogRow, type SagaRow } from '../saga-table.ts';

/**
 * A saga that the predecessor started has no definition. When an operator acts on it, it adopts the current workflow of
 * its name. Nothing is pinned before that, so a wrongly registered workflow can still be corrected.
 */
export type Adoption = Readonly<{ hash: string; workflow: Workflow; isPivotOpened: boolean }>;

/** The definition that matches the saga's log, or why there is none. The saga must be locked. */
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
    return { flaw: `the saga was started without a definition: register the workflow ${name} first` };
  const { hash } = current;
  const workflow = fromStored(current.definition);
  const otherwise = `the registered workflow ${name} is not the one that this saga was started with`;
  const [named] = await tx.query<{ step_index: number; step_name: string }>(sql`
    SELECT l.step_index, l.step_name
    FROM saga.saga_step_logs l
    WHERE l.saga_id = ${id} AND l.step_name <> ''
      AND l.step_name IS DISTINCT FROM (${workflow.steps.map((step) => step.name)}::text[])[l.step_index + 1]
    ORDER BY l.step_index LIMIT 1`);
  if (named !== undefined) {
    const { step_index: step, step_name: was } = named;
    const is = workflow.steps[step]?.name ?? 'missing';
    return { flaw: `${otherwise}: step ${step} was ${was} and is ${is}` };
  }
  const state = stateOf(saga, log);
  const folded = fold(workflow, state, state.log);
  if (!isReachedFrom(status, folded.status))
    return { flaw: `${otherwise}: by its log it would be ${folded.status} and is ${status}` };
  const moved = await correctStuckStep(tx, saga, workflow);
  if (moved !== null) return { flaw: moved };
  return { hash, workflow, isPivotOpened: isPivotOpened(workflow, state.log) };
}

/**
 * Whether the log matches the saga's status, or says that nothing is left to do: the predecessor was stopped before it
 * wrote the final status. Then any operator action ends the saga.
 */
function isReachedFrom(status: Status, folded: Status): boolean {
  if (folded === status) return true;
  return status === 'COMPENSATING' ? folded === 'FAILED' : status === 'RUNNING' && folded === 'COMPLETED';
}

/**
 * A saga that goes forward is stuck at its first step that is not done or, if its workflow has no such step, at the last
 * one. Which one depends on the registered workflow. If the operator acted on another step, the stuck step is corrected
 * and the action refused: with a workflow that lacks a step, the same action would end the saga.
 */
async function correctStuckStep(
  tx: Queryable,
  saga: SagaRow,
  { name, steps }: Workflow,
): Promise<string | null> {
  const { id, current_step: next, stuck_step: stuck, stuck_op: op } = saga;
  const step = Math.min(next, steps.length - 1);
  if (op !== 'EXECUTE' || stuck === step) return null;
  await tx.query(sql`
    UPDATE saga.saga_states SET stuck_step = ${step}
    WHERE id = ${id} AND needs_attention AND definition_hash IS NULL`);
  const at = `it is now stuck at ${steps[step]?.name ?? ''}`;
  return next < steps.length
    ? `the workflow ${name} has more steps than when this saga got stuck: ${at}`
    : `by its log this saga has done every step of the workflow ${name}: ${at}, and retrying that ends it`;
}

/**
 * Pins the definition. Rows of steps that the workflow does not have are deleted: they were inserted as possible calls
 * before the workflow was known.
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
