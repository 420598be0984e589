import { AppError } from '../../kernel/errors.ts';
import type { AbortOutcome } from '../domain/request-abort.ts';
import type { Abort, Person, Status } from '../domain/saga-state.ts';
import { throwNotFound } from './find-saga.ts';

export type AbortWish = Readonly<{ kind: Abort['kind']; by: Person }>;

/** What the rule of the domain says, and the status that it was said of. */
export type AbortResult =
  | Readonly<{ outcome: 'not_found' }>
  | (Readonly<{ status: Status }> &
      (Readonly<{ outcome: 'stored' }> | Exclude<AbortOutcome, Readonly<{ outcome: 'stored' }>>));

export type AbortDeps = Readonly<{
  aborts: Readonly<{ request(sagaId: string, wish: AbortWish): Promise<AbortResult> }>;
  onAbort: (asked: AbortWish & Readonly<{ sagaId: string; status: Status; isStored: boolean }>) => void;
}>;

export type AnsweredAbort = Readonly<{ status: Status; message: string }>;

const stored: Readonly<Record<Abort['kind'], string>> = {
  cancel: 'the saga is cancelled: what was done is undone as soon as the call under way has ended',
  compensate: 'the saga is compensated: what was done is undone as soon as the call under way has ended',
};

/** Answers as soon as the wish is stored; the engine does the rest. */
export async function abortSaga(deps: AbortDeps, sagaId: string, wish: AbortWish): Promise<AnsweredAbort> {
  const result = await deps.aborts.request(sagaId, wish);
  switch (result.outcome) {
    case 'not_found':
      return throwNotFound(`saga not found: saga_id=${sagaId}`);
    case 'refused':
      throw new AppError('SYS_SAGA_CONFLICT', 'conflict', result.message);
    case 'stored':
    case 'unchanged': {
      const isStored = result.outcome === 'stored';
      deps.onAbort({ ...wish, sagaId, status: result.status, isStored });
      const message = isStored ? stored[wish.kind] : 'the saga is to be undone already; nothing was changed';
      return { status: result.status, message };
    }
  }
}
