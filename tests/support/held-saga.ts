import { newSaga } from '../../src/saga/domain/saga-state.ts';
import type { HeldSaga } from '../../src/saga/usecase/ports.ts';

/** A saga of one step, as a claim finds it. */
export function heldSagaOf(id: string, more: Partial<HeldSaga> = {}): HeldSaga {
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
    payload: null,
    startedAt: 0,
    trace: null,
    state: newSaga(0, null),
    wasLost: false,
    setbacks: 0,
    runsAlone: false,
    bytes: 0,
    lease: { owner: 'me', epoch: 1n, endsAtMs: Number.POSITIVE_INFINITY },
    ...more,
  };
}
