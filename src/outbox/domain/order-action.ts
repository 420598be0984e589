import type { Resolution, Status } from './order.ts';

/** What a person can do to an order. */
export type Action = 'cancel' | 'skip' | 'supersede';

export type ActionState = Readonly<{
  status: Status;
  resolution: Resolution | null;
  inDoubt: boolean;
  /** The ledger records its effect. */
  hasSucceeded: boolean;
}>;

export type ActionRefusal = 'wrong_status' | 'already_sent' | 'effect_unchecked';

/**
 * Null if the action is allowed. Waiting orders can be cancelled; dead ones without a resolution can be skipped or
 * superseded. If an attempt may have had its effect, the person must have checked the destination.
 */
export function refusalOf(action: Action, order: ActionState, effectChecked: boolean): ActionRefusal | null {
  if (order.hasSucceeded || order.status === 'sent') return 'already_sent';
  const isAllowed =
    action === 'cancel'
      ? order.status === 'queued' || order.status === 'failed'
      : order.status === 'dead' && order.resolution === null;
  if (!isAllowed) return 'wrong_status';
  return order.inDoubt && !effectChecked ? 'effect_unchecked' : null;
}

export const resolutionOf: Readonly<Record<Action, Resolution>> = {
  cancel: 'cancelled',
  skip: 'skipped',
  supersede: 'superseded',
};
