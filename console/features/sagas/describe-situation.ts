import type { Saga } from '../../lib/server-shapes.ts';
import type { LogRow } from './use-saga.ts';

/** One clause of the sentence that says how a saga stands. */
export type Clause =
  | Readonly<{ say: 'notStarted' | 'undoneAll' | 'undoneByHand' | 'cancelled' }>
  | Readonly<{ say: 'cancelledUntouched' | 'failedUntouched' }>
  | Readonly<{ say: 'completed'; all: number }>
  | Readonly<{ say: 'progress' | 'undoProgress'; done: number; all: number }>
  | Readonly<{ say: 'inDoubt'; steps: readonly string[] }>
  | Readonly<{ say: 'waitsForService'; service: string }>
  | Readonly<{ say: 'calling' | 'polling'; step: string; isUndo: boolean }>
  | Readonly<{ say: 'failed'; step: string; isUndo: boolean; attempts: number; error: string | null }>
  | Readonly<{ say: 'stuck'; step: string; isUndo: boolean; attempts: number; error: string }>;

export function describeSituation(saga: Saga, log: readonly LogRow[]): readonly Clause[] {
  const steps = saga.steps ?? [];
  const hasUndos = log.some(({ action }) => action === 'COMPENSATE');
  switch (saga.status) {
    case 'COMPLETED':
      return [{ say: 'completed', all: steps.length }];
    case 'CANCELLED':
      return [{ say: hasUndos ? 'cancelled' : 'cancelledUntouched' }];
    case 'FAILED':
      if (!hasUndos) return [{ say: 'failedUntouched' }];
      return [{ say: saga.compensation === 'resolved' ? 'undoneByHand' : 'undoneAll' }];
    case 'STARTED':
    case 'RUNNING':
      if (log.length === 0 && saga.stuck === undefined)
        return saga.waiting_for === undefined ? [{ say: 'notStarted' }] : currentOf(saga, log);
      return [{ say: 'progress', done: saga.current_step, all: steps.length }, ...currentOf(saga, log)];
    case 'COMPENSATING': {
      const done = steps.filter(({ state }) => settled.has(state)).length;
      const doubtful = inDoubt(log);
      return [
        { say: 'undoProgress', done, all: steps.length },
        ...(doubtful.length === 0 ? [] : [{ say: 'inDoubt' as const, steps: doubtful }]),
        ...currentOf(saga, log),
      ];
    }
  }
}

/** Nothing of such a step is left. */
const settled: ReadonlySet<string> = new Set(['not_started', 'skipped', 'failed', 'undone', 'undo_skipped']);

/** What it does now, or why it does not. */
function currentOf(saga: Saga, log: readonly LogRow[]): readonly Clause[] {
  const { stuck, waiting_for: waiting } = saga;
  const last = log.at(-1);
  if (stuck !== undefined) {
    const step = stuck.step ?? '?';
    const isUndo = stuck.action === 'COMPENSATE';
    const attempts = callsOf(log, step, stuck.action);
    const doubtful = saga.status === 'RUNNING' ? inDoubt(log) : [];
    return [
      ...(doubtful.length === 0 ? [] : [{ say: 'inDoubt' as const, steps: doubtful }]),
      { say: 'stuck', step, isUndo, attempts, error: stuck.reason },
    ];
  }
  if (waiting !== undefined) return [{ say: 'waitsForService', service: waiting.service }];
  if (last === undefined) return [];
  const { step_name: step, action, status, error_message: error } = last;
  const isUndo = action === 'COMPENSATE';
  if (status === null) return [{ say: last.isPolled ? 'polling' : 'calling', step, isUndo }];
  if (status === 'SUCCESS' || status === 'SKIPPED') return [];
  const isTurned = !isUndo && saga.status === 'COMPENSATING';
  return isTurned ? [] : [{ say: 'failed', step, isUndo, attempts: callsOf(log, step, action), error }];
}

/** Attempts that were calls, or would have been. */
function callsOf(log: readonly LogRow[], step: string, action: string): number {
  return log.filter(
    (row) =>
      row.step_name === step && row.action === action && row.answer !== 'unserved' && row.status !== null,
  ).length;
}

/** Steps of which one call has an unknown effect, and no later answer has said that it is done. */
function inDoubt(log: readonly LogRow[]): readonly string[] {
  const known = new Set(
    log
      .filter(({ action, answer }) => action === 'EXECUTE' && (answer === 'done' || answer === 'not_done'))
      .map(({ step_name: step }) => step),
  );
  const undone = new Set(
    log
      .filter(
        ({ action, status }) => action === 'COMPENSATE' && (status === 'SUCCESS' || status === 'SKIPPED'),
      )
      .map(({ step_name: step }) => step),
  );
  const doubtful = log.filter(
    ({ action, answer, headers, step_name: step }) =>
      action === 'EXECUTE' &&
      answer === 'unknown' &&
      headers !== null &&
      !known.has(step) &&
      !undone.has(step),
  );
  return [...new Set(doubtful.map(({ step_name: step }) => step))];
}
