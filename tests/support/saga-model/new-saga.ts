import type { SagaState } from '../../../src/saga/domain/saga-state.ts';

export function newSaga(now: number, deadlineAt: number | null): SagaState {
  return {
    status: 'STARTED',
    currentStep: 0,
    outputs: {},
    compensation: 'none',
    errorMessage: null,
    stuck: null,
    pivotOpened: false,
    abort: null,
    isDeadlineOver: false,
    log: [],
    deadlineAt,
    polling: null,
    waiting: null,
    wakeAt: now,
  };
}
