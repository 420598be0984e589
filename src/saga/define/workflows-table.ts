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

/** A definition of a workflow, current or not. */
export type StoredDefinition = RegisteredWorkflow & Readonly<{ registeredAt: Date }>;

/** More are not shown; a workflow that is generated may have thousands. */
export const maxDefinitions = 50;

/** The current one, then the newest. */
export async function listDefinitions(db: Queryable, name: string): Promise<readonly StoredDefinition[]> {
  const rows = await db.query<WorkflowRow & Readonly<{ created_at: Date }>>(sql`
    SELECT d.hash, d.definition, d.created_at
    FROM saga.workflow_definitions d LEFT JOIN saga.workflows w ON w.current_hash = d.hash
    WHERE d.name = ${name}
    ORDER BY (w.current_hash IS NOT NULL) DESC, d.created_at DESC, d.hash
    LIMIT ${maxDefinitions + 1}`);
  return rows.map((row) => ({ ...registered(row), registeredAt: row.created_at }));
}

/** How many unfinished sagas keep a definition, and how many of them need attention. */
export type DefinitionUse = Readonly<{
  name: string;
  /** Null for sagas that were started without a definition. */
  hash: string | null;
  unfinished: number;
  needsAttention: number;
}>;

export type DefinitionUses = Readonly<{
  uses: readonly DefinitionUse[];
  /** There are more unfinished sagas than were counted. */
  isMinimum: boolean;
}>;

const countedSagas = 100_000;

/** Counts a limited number of unfinished sagas, because there may be millions. */
export async function countUses(db: Queryable): Promise<DefinitionUses> {
  const rows = await db.query<DefinitionUse & Readonly<{ total: bigint }>>(sql`
    SELECT u.workflow_name AS name, u.definition_hash AS hash, count(*)::int AS unfinished,
           (count(*) FILTER (WHERE u.needs_attention))::int AS "needsAttention", sum(count(*)) OVER ()::bigint AS total
    FROM (
      SELECT t.workflow_name, t.definition_hash, t.needs_attention FROM saga.saga_states t
      WHERE t.phase IN ('NEW', 'FORWARD', 'COMPENSATING') LIMIT ${countedSagas + 1}) AS u
    GROUP BY u.workflow_name, u.definition_hash`);
  return {
    uses: rows.map(({ total: _total, ...use }) => use),
    isMinimum: Number(rows[0]?.total ?? 0n) > countedSagas,
  };
}
