import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { StartDeps, StartOutcome } from '../usecase/start-saga.ts';

type StartRow = Readonly<{ saga_id: string; outcome: StartOutcome['outcome'] }>;

export function createPostgresStarts(db: Queryable): StartDeps['starts'] {
  return {
    async start({ workflowName, payloadText, correlationId, initiatedBy, key, trace }) {
      const [row] = await db.query<StartRow>(sql`
        SELECT saga_id, outcome FROM saga.start_saga(
          ${workflowName}, ${payloadText}::jsonb, ${correlationId}, ${initiatedBy}, ${key}, ${trace})`);
      if (row === undefined) throw new Error('saga.start_saga gave no row');
      const { outcome, saga_id: sagaId } = row;
      return outcome === 'started' || outcome === 'replayed' ? { outcome, sagaId } : { outcome };
    },
  };
}
