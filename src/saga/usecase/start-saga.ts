import { AppError } from '../../kernel/errors.ts';
import { throwNotFound } from './find-saga.ts';

export type NewSaga = Readonly<{
  workflowName: string;
  /** JSON text of an object; null where there is none. */
  payloadText: string | null;
  correlationId: string | null;
  initiatedBy: string | null;
  /** The same key again means the same saga. */
  key: string | null;
  trace: string | null;
}>;

export type StartOutcome =
  | Readonly<{ outcome: 'started' | 'replayed'; sagaId: string }>
  | Readonly<{ outcome: 'mismatch' | 'unknown_workflow' }>;

export type StartDeps = Readonly<{
  starts: Readonly<{ start(saga: NewSaga): Promise<StartOutcome> }>;
}>;

export type StartedSaga = Readonly<{ sagaId: string; isReplayed: boolean }>;

export async function startSaga({ starts }: StartDeps, saga: NewSaga): Promise<StartedSaga> {
  const started = await starts.start(saga);
  switch (started.outcome) {
    case 'started':
    case 'replayed':
      return { sagaId: started.sagaId, isReplayed: started.outcome === 'replayed' };
    case 'unknown_workflow':
      return throwNotFound(`workflow not found: workflow_name=${saga.workflowName}`);
    case 'mismatch':
      throw new AppError(
        'SYS_SAGA_IDEMPOTENCY_MISMATCH',
        'semantic',
        'this key began a saga of this workflow with something else in its body',
        {
          details: [{ field: 'idempotency-key', reason: 'mismatch', message: 'was used with another body' }],
        },
      );
  }
}
