import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { fold } from '../domain/fold.ts';
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
  if (folded.status !== status)
    return { flaw: `${otherwise}: by its log it would be ${folded.status} and is ${status}` };
  return { hash, workflow, isPivotOpened: isPivotOpened(workflow, state.log) };
}

/** From here on the saga is one of ours. */
export async function adoptSaga(tx: Queryable, sagaId: string, { hash, workflow }: Adoption): Promise<void> {
  await tx.query(sql`
    UPDATE saga.saga_states SET definition_hash = ${hash} WHERE id = ${sagaId} AND definition_hash IS NULL`);
  await tx.query(sql`
    UPDATE saga.saga_step_logs l
    SET step_name = COALESCE((${workflow.steps.map((step) => step.name)}::text[])[l.step_index + 1], '')
    WHERE l.saga_id = ${sagaId} AND l.step_name = ''`);
}
