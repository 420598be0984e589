import { AppError } from '../../kernel/errors.ts';
import type { PersonRefusal } from '../domain/decide-person.ts';
import type { Person, Status } from '../domain/saga-state.ts';
import { throwNotFound } from './find-saga.ts';

/** What a person does with the step at which a saga is stuck, which they call by its name. */
export type StepAct = Readonly<{ stepName: string; by: Person }> &
  (
    | Readonly<{ kind: 'retry' }>
    | Readonly<{ kind: 'skip' }>
    | Readonly<{ kind: 'resolve'; outcome?: 'done' | 'not_done' | undefined; output?: unknown }>
  );

export type StepActResult =
  | Readonly<{ outcome: 'not_found'; what: 'saga' | 'step' }>
  | PersonRefusal
  | Readonly<{ outcome: 'done'; status: Status }>;

export type ActDeps = Readonly<{
  steps: Readonly<{ act(sagaId: string, act: StepAct): Promise<StepActResult> }>;
  onActed: (acted: Readonly<{ sagaId: string; act: StepAct; status: Status }>) => void;
}>;

export type AnsweredAct = Readonly<{ status: Status; message: string }>;

const messages: Readonly<Record<StepAct['kind'], string>> = {
  retry: 'the step is tried again, with a new budget',
  skip: 'the saga goes on without the step',
  resolve: 'the step was resolved by hand',
};

export async function actOnStep(deps: ActDeps, sagaId: string, act: StepAct): Promise<AnsweredAct> {
  const result = await deps.steps.act(sagaId, act);
  switch (result.outcome) {
    case 'not_found':
      return result.what === 'saga'
        ? throwNotFound(`saga not found: saga_id=${sagaId}`)
        : throwNotFound(`the saga has no such step: saga_id=${sagaId}, step=${act.stepName}`);
    case 'refused':
      throw refusal(result);
    case 'done':
      deps.onActed({ sagaId, act, status: result.status });
      return { status: result.status, message: messages[act.kind] };
  }
}

function refusal({ kind, message, retryAfterMs }: PersonRefusal): AppError {
  const code = kind === 'conflict' ? 'SYS_SAGA_CONFLICT' : 'SYS_SAGA_UNPROCESSABLE';
  return new AppError(code, kind, message, retryAfterMs === undefined ? {} : { retryAfterMs });
}
