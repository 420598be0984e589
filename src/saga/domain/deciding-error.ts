import type { SagaState } from './saga-state.ts';
import { attemptsOf } from './step-log.ts';

/**
 * The error of the failure that the saga is stuck at, or is undone for; null if it is neither, or if a person asked for
 * the undo.
 */
export function decidingError({ stuck, errorMessage, abort, log }: SagaState): string | null {
  if (stuck !== null) {
    const { step, op, reason } = stuck;
    return lastErrorOf(attemptsOf(log, step, op)) ?? lastErrorOf(attemptsOf(log, step, 'EXECUTE')) ?? reason;
  }
  if (errorMessage === null) return null;
  // The cause of an undo is the name of the step and the error of its last attempt; else the deadline or a person.
  const failed = log.findLast(({ op, error }) => op === 'EXECUTE' && endsWithError(errorMessage, error));
  return failed?.error ?? (abort === null ? errorMessage : null);
}

function lastErrorOf(attempts: SagaState['log']): string | null {
  return attempts.findLast(({ error }) => error !== null)?.error ?? null;
}

function endsWithError(message: string, error: string | null): boolean {
  return error !== null && message.endsWith(`: ${error}`);
}
