import type { Resolution, Status } from './order.ts';

/** What a person may decide about an order. */
export type Action = 'cancel' | 'skip' | 'supersede';

export type ActionState = Readonly<{
  status: Status;
  resolution: Resolution | null;
  inDoubt: boolean;
  /** The ledger knows that its effect has happened. */
  hasSucceeded: boolean;
}>;

export type ActionRefusal = 'wrong_status' | 'already_sent' | 'effect_unchecked';

/**
 * Null where it may be done. A cancel is for what still waits; skipping and superseding are for what is dead and
 * undecided. Where an attempt may have had its effect, whoever decides must have looked.
 */
export function refusalOf(action: Action, order: ActionState, effectChecked: boolean): ActionRefusal | null {
  if (order.hasSucceeded || order.status === 'sent') return 'already_sent';
  const isMeant =
    action === 'cancel'
      ? order.status === 'queued' || order.status === 'failed'
      : order.status === 'dead' && order.resolution === null;
  if (!isMeant) return 'wrong_status';
  return order.inDoubt && !effectChecked ? 'effect_unchecked' : null;
}

export const resolutionOf: Readonly<Record<Action, Resolution>> = {
  cancel: 'cancelled',
  skip: 'skipped',
  supersede: 'superseded',
};
