import { newSaga } from './saga-model/new-saga.ts';
import type { LeasedSaga } from '../../src/saga/run/leased-sagas.ts';

/** A saga of one step, as a claim finds it. */
export function leasedSagaOf(id: string, more: Partial<LeasedSaga> = {}): LeasedSaga {
  return {
    id,
    workflow: {
      name: 'order',
      deadlineMs: null,
      steps: [
        {
          name: 'reserve',
          service: 'shop',
          method: 'POST /reserve',
          undo: { kind: 'none' },
          isPivot: false,
          timeoutMs: 1000,
          retry: { maxAttempts: 3, backoff: 'fixed', initialIntervalMs: 1 },
          input: null,
          undoInput: null,
        },
      ],
    },
    correlationId: null,
    payload: null,
    startedAt: 0,
    trace: null,
    state: newSaga(0, null),
    wasLost: false,
    failedRounds: 0,
    runsAlone: false,
    bytes: 0,
    lease: { owner: 'me', epoch: 1n, endsAtMs: Number.POSITIVE_INFINITY },
    ...more,
  };
}
