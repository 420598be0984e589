import { isTerminal, type Abort, type SagaState } from './saga-state.ts';

/** `unchanged`: it is already being undone, or to be. `refused`: it has ended, or has passed its pivot. */
export type AbortOutcome =
  | Readonly<{ outcome: 'stored'; state: SagaState }>
  | Readonly<{ outcome: 'unchanged' }>
  | Readonly<{ outcome: 'refused'; message: string }>;

/**
 * A request to cancel or to compensate. It is only stored: the next settle, by any process, acts on it, so status, lease
 * and epoch do not change. It wakes a saga that needs attention.
 */
export function requestAbort(state: SagaState, abort: Abort): AbortOutcome {
  if (isTerminal(state.status))
    return { outcome: 'refused', message: `the saga has ended: status=${state.status}` };
  if (state.status === 'COMPENSATING') return { outcome: 'unchanged' };
  if (state.pivotOpened)
    return { outcome: 'refused', message: 'the saga is beyond its pivot and can only go forward' };
  if (state.abort !== null) return { outcome: 'unchanged' };
  return { outcome: 'stored', state: { ...state, abort, wakeAt: abort.at, stuck: null, waiting: null } };
}
