import { AppError } from '../../kernel/errors.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { busy, throwNotFound } from '../saga-errors.ts';

export type NewSaga = Readonly<{
  workflowName: string;
  /** JSON text of an object; null for no payload. */
  payloadText: string | null;
  correlationId: string | null;
  initiatedBy: string | null;
  /** Starting again with the same key returns the same saga. */
  key: string | null;
  trace: string | null;
  /** The definition to start with; null for the current one. */
  hash: string | null;
  /** The caller; null without authentication. */
  createdBy: string | null;
  /** The caller sees the sagas of others of this workflow. */
  maySee: boolean;
}>;

export type StartedSaga = Readonly<{ sagaId: string; isReplayed: boolean }>;

type StartRow = Readonly<{
  saga_id: string;
  outcome: 'started' | 'replayed' | 'mismatch' | 'unknown_workflow' | 'busy' | 'unregistered';
  current_hash: string;
}>;

export async function startSaga(db: Queryable, saga: NewSaga): Promise<StartedSaga> {
  const { workflowName, payloadText, correlationId, initiatedBy, key, trace, hash, createdBy } = saga;
  const [row] = await db.query<StartRow>(sql`
    SELECT saga_id, outcome, current_hash FROM saga.start_saga(
      ${workflowName}, ${payloadText}::jsonb, ${correlationId}, ${initiatedBy}, ${key}, ${trace}, ${hash},
      ${createdBy})`);
  if (row === undefined) throw new Error('saga.start_saga returned no row');
  if (row.outcome === 'replayed' || row.outcome === 'mismatch') await requireOwnKey(db, saga);
  switch (row.outcome) {
    case 'started':
    case 'replayed':
      return { sagaId: row.saga_id, isReplayed: row.outcome === 'replayed' };
    case 'unknown_workflow':
      return throwNotFound(`workflow not found: workflow_name=${workflowName}`);
    case 'unregistered':
      throw unregistered(saga, row.current_hash);
    case 'busy':
      throw busy('another open transaction holds this idempotency key');
    case 'mismatch':
      throw new AppError(
        'SYS_SAGA_IDEMPOTENCY_MISMATCH',
        'semantic',
        'this key was used for a saga of this workflow with another body',
        {
          details: [{ field: 'idempotency-key', reason: 'mismatch', message: 'was used with another body' }],
        },
      );
  }
}

/**
 * Refuses a key that another principal used first, without the saga that it started, unless the caller sees that saga
 * anyway. Of a saga that was started in SQL, or without authentication, nobody is known.
 */
async function requireOwnKey(
  db: Queryable,
  { workflowName, key, createdBy, maySee }: NewSaga,
): Promise<void> {
  if (createdBy === null || maySee) return;
  const rows = await db.query(sql`
    SELECT 1 FROM saga.saga_start_keys
    WHERE workflow_name = ${workflowName} AND key = ${key}
      AND created_by IS NOT NULL AND created_by <> ${createdBy}`);
  if (rows.length === 0) return;
  const message = 'another caller has used this key for a saga of this workflow';
  throw new AppError('SYS_SAGA_KEY_TAKEN', 'conflict', message, {
    details: [{ field: 'idempotency-key', reason: 'taken', message: 'is used by another caller' }],
  });
}

function unregistered({ workflowName, hash }: NewSaga, currentHash: string): AppError {
  const message = `the workflow ${workflowName} has no registered definition ${hash}; its current one is ${currentHash}`;
  return new AppError('SYS_SAGA_CONFLICT', 'conflict', message, {
    details: [{ field: 'definition_hash', reason: 'not_registered', message: `is not registered: ${hash}` }],
  });
}
