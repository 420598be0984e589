import type { Op } from './saga-state.ts';

/**
 * The state of a step, in one word. `retrying`: an attempt failed, and another one follows. `failed`: it did not
 * happen. `in_doubt`: it may have happened, and its undo has not been called yet. `undo_skipped`: there is nothing to
 * undo, or an operator skipped the undo. `stuck`: it needs attention.
 */
export const stepStates = [
  'not_started',
  'running',
  'retrying',
  'done',
  'skipped',
  'failed',
  'in_doubt',
  'undoing',
  'undone',
  'undo_skipped',
  'stuck',
] as const;
export type StepState = (typeof stepStates)[number];

/** All attempts at a step's action, or at its undo, put together. */
export type TriedOp = Readonly<{
  isOpen: boolean;
  isDone: boolean;
  isSkipped: boolean;
  /** A call was sent whose effect is unknown. */
  isUnknown: boolean;
  /** An operator checked that it did not happen. */
  isNotDone: boolean;
}>;

export type TriedStep = Readonly<{
  action: TriedOp | undefined;
  undo: TriedOp | undefined;
  /** What of it needs attention; null if nothing. */
  stuck: Op | null;
}>;

/** `isForward`: the saga is not being undone and was not. */
export function stepStateOf({ action, undo, stuck }: TriedStep, isForward: boolean): StepState {
  if (stuck !== null) return 'stuck';
  if (undo !== undefined) return undo.isDone ? 'undone' : undo.isSkipped ? 'undo_skipped' : 'undoing';
  if (action === undefined) return 'not_started';
  if (action.isDone) return 'done';
  if (action.isSkipped) return 'skipped';
  if (action.isOpen) return 'running';
  if (action.isNotDone) return 'failed';
  if (isForward) return 'retrying';
  return action.isUnknown ? 'in_doubt' : 'failed';
}
