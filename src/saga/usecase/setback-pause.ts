import { backoffMs } from '../../kernel/backoff.ts';

const setbackPause = { initialMs: 1000, maxMs: 300_000, jitter: 0.2 };

/** How long a saga stays away after so many setbacks in a row. */
export function setbackPauseMs(setbacks: number, random: () => number = Math.random): number {
  return backoffMs(setbackPause, setbacks, random);
}
