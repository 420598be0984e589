import type { FollowedRedrive } from './live-events.ts';

/** How far a redrive is, for a small meter: shares of what was selected. */
export type Share = Readonly<{ done: number; quiet: number; failed: number }>;

export function shareDone({ counts }: Pick<FollowedRedrive, 'counts'>): Share {
  const failed = counts.came_back + counts.failed + counts.unknown;
  const done = counts.selected - counts.waiting - counts.in_flight;
  const whole = Math.max(1, counts.selected);
  return { done, quiet: Math.max(0, done - failed) / whole, failed: failed / whole };
}
