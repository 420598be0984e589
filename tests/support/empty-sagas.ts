import type { Database } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';

/** Their tables refuse to be emptied; a superuser may tell them not to. */
export async function emptySagas(db: Database): Promise<void> {
  await db.transaction(async (tx) => {
    await tx.query(sql`SET LOCAL session_replication_role = replica`);
    await tx.query(sql`
      TRUNCATE saga.saga_states, saga.saga_step_logs, saga.saga_states_archive, saga.saga_step_logs_archive,
               saga.saga_start_keys, saga.workflows, saga.workflow_definitions`);
  });
}
