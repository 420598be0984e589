import { statuses, type Status } from './message.ts';

/**
 * What a redrive does with each of its messages. `retry` publishes it again. The others are the decisions that a person
 * can also make message by message: `reopen` gives a new retry budget, `dead` ends the retries, `delete` removes it.
 */
export const redriveKinds = ['retry', 'reopen', 'dead', 'delete'] as const;
export type RedriveKind = (typeof redriveKinds)[number];
export type Decision = Exclude<RedriveKind, 'retry'>;

/** The statuses that a filter without statuses means. Messages that are named by their ids may have any. */
export function statusesInScope(
  kind: RedriveKind,
  { hasIds }: Readonly<{ hasIds: boolean }>,
): readonly Status[] {
  if (hasIds) return statuses;
  return kind === 'dead' ? ['PENDING', 'RETRYING'] : ['PENDING', 'RETRYING', 'DEAD'];
}
