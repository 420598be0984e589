import type { Queryable } from '../platform/postgres/database.ts';
import { sql } from '../platform/postgres/sql.ts';

/** How many of the first migrations the predecessor has applied to this database. */
export async function findPredecessorMigrations(tx: Queryable): Promise<number> {
  const [found] = await tx.query<{ states: boolean; logs: boolean; updates: boolean }>(sql`
    SELECT to_regclass('saga.saga_states') IS NOT NULL AS states,
           to_regclass('saga.saga_step_logs') IS NOT NULL AS logs,
           EXISTS (SELECT 1 FROM pg_attribute
                   WHERE attrelid = to_regclass('saga.saga_step_logs') AND attname = 'updated_at') AS updates`);
  if (found?.states !== true) return 0;
  if (!found.logs) return 2;
  // The fourth only creates missing indexes, so it may be applied again.
  return found.updates ? 5 : 3;
}
