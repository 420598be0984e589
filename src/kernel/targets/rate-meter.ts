import type { Clock } from '../clock.ts';
import { countSent, emptyMeter, measuredRate } from './throttle.ts';

/** Measures how fast all processes together call a target, assuming that the others are as fast as this one. */
export type RateMeter = Readonly<{
  started(calls?: number): void;
  ended(): void;
  /** Calls per second. */
  rate(): number;
}>;

export function createRateMeter(clock: Pick<Clock, 'monotonicMs'>, replicas: () => number): RateMeter {
  let started = emptyMeter;
  let ended = emptyMeter;
  return {
    started: (calls = 1) => void (started = countSent(started, calls, clock.monotonicMs())),
    ended: () => void (ended = countSent(ended, 1, clock.monotonicMs())),
    rate() {
      const nowMs = clock.monotonicMs();
      // A 429 often comes faster than the answers to calls before it, so that started calls count as well.
      const own = Math.max(measuredRate(started, nowMs), measuredRate(ended, nowMs));
      return own * Math.max(1, replicas());
    },
  };
}
