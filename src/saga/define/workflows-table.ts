import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { fromStored, toStored, workflowHash } from '../domain/workflow/workflow-hash.ts';
import type { Workflow } from '../domain/workflow/workflow.ts';
import { busy } from '../saga-errors.ts';

export type RegisteredWorkflow = Readonly<{ hash: string; workflow: Workflow }>;

/** Returns the hash. A definition from a file becomes current only if it was never seen before. */
export async function storeWorkflow(
  db: Queryable,
  workflow: Workflow,
  { isFromFile }: Readonly<{ isFromFile: boolean }>,
): Promise<string> {
  const hash = workflowHash(workflow);
  const [row] = await db.query<{ outcome: 'registered' | 'known' | 'busy' }>(sql`
    SELECT outcome FROM saga.register_workflow(
      ${hash}, ${workflow.name}, ${JSON.stringify(toStored(workflow))}::jsonb, ${!isFromFile})`);
  if (row?.outcome === 'busy') throw busy(`another open transaction registers the workflow ${workflow.name}`);
  return hash;
}

type WorkflowRow = Readonly<{ hash: string; definition: unknown }>;

/** The current definitions, by name. */
export async function listWorkflows(db: Queryable): Promise<readonly RegisteredWorkflow[]> {
  const rows = await db.query<WorkflowRow>(sql`
    SELECT w.current_hash AS hash, d.definition
    FROM saga.workflows w JOIN saga.workflow_definitions d ON d.hash = w.current_hash ORDER BY w.name`);
  return rows.map(registered);
}

export async function findWorkflow(db: Queryable, name: string): Promise<RegisteredWorkflow | null> {
  const [row] = await db.query<WorkflowRow>(sql`
    SELECT w.current_hash AS hash, d.definition
    FROM saga.workflows w JOIN saga.workflow_definitions d ON d.hash = w.current_hash WHERE w.name = ${name}`);
  return row === undefined ? null : registered(row);
}

function registered({ hash, definition }: WorkflowRow): RegisteredWorkflow {
  return { hash, workflow: fromStored(definition) };
}
