import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { fromStored, toStored, workflowHash } from '../domain/workflow-hash.ts';
import type { Workflow } from '../domain/workflow.ts';
import type { RegisteredWorkflow, WorkflowStore } from '../usecase/workflow-ports.ts';

export function createPostgresWorkflows(db: Database): WorkflowStore {
  return {
    async register(workflow, { isFromFile }) {
      const hash = workflowHash(workflow);
      await db.transaction(async (tx) => {
        const isNew = await storeDefinition(tx, workflow, hash);
        // A file that was seen before changes nothing: a restart with old files never reverts a newer registration.
        if (isNew || !isFromFile) await makeCurrent(tx, workflow.name, hash);
      });
      return hash;
    },

    async list() {
      const rows = await db.query<WorkflowRow>(sql`
        SELECT w.current_hash AS hash, d.definition
        FROM saga.workflows w JOIN saga.workflow_definitions d ON d.hash = w.current_hash ORDER BY w.name`);
      return rows.map(registered);
    },

    async find(name) {
      const [row] = await db.query<WorkflowRow>(sql`
        SELECT w.current_hash AS hash, d.definition
        FROM saga.workflows w JOIN saga.workflow_definitions d ON d.hash = w.current_hash WHERE w.name = ${name}`);
      return row === undefined ? null : registered(row);
    },
  };
}

type WorkflowRow = Readonly<{ hash: string; definition: unknown }>;

function registered({ hash, definition }: WorkflowRow): RegisteredWorkflow {
  return { hash, workflow: fromStored(definition) };
}

async function storeDefinition(tx: Queryable, workflow: Workflow, hash: string): Promise<boolean> {
  const rows = await tx.query(sql`
    INSERT INTO saga.workflow_definitions (hash, name, definition)
    VALUES (${hash}, ${workflow.name}, ${JSON.stringify(toStored(workflow))}::jsonb)
    ON CONFLICT (hash) DO NOTHING RETURNING hash`);
  return rows.length > 0;
}

async function makeCurrent(tx: Queryable, name: string, hash: string): Promise<void> {
  await tx.query(sql`
    INSERT INTO saga.workflows (name, current_hash) VALUES (${name}, ${hash})
    ON CONFLICT (name) DO UPDATE SET current_hash = EXCLUDED.current_hash, updated_at = clock_timestamp()`);
}
