import { isTerminal, type Abort, type SagaState } from './saga-state.ts';

/** `unchanged`: it is being undone already, or an earlier wish stands. `refused`: it has ended, or cannot turn back. */
export type AbortOutcome =
  | Readonly<{ outcome: 'stored'; state: SagaState }>
  | Readonly<{ outcome: 'unchanged' }>
  | Readonly<{ outcome: 'refused'; message: string }>;

/**
 * A wish to cancel or to compensate. It is only stored: the next settle heeds it, whoever makes it, so status, lease
 * and epoch stay as they are. A saga that waits for a person is woken by it.
 */
export function requestAbort(state: SagaState, abort: Abort): AbortOutcome {
  if (isTerminal(state.status))
    return { outcome: 'refused', message: `the saga has ended: status=${state.status}` };
  if (state.status === 'COMPENSATING') return { outcome: 'unchanged' };
  if (state.pivotOpened)
    return { outcome: 'refused', message: 'the saga is beyond its pivot and can only go forward' };
  if (state.abort !== null) return { outcome: 'unchanged' };
  return { outcome: 'stored', state: { ...state, abort, wakeAt: abort.at, stuck: null } };
}
