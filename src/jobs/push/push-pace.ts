import type { Clock } from '../../kernel/clock.ts';
import { createRateMeter } from '../../kernel/targets/rate-meter.ts';

/**
 * Measures how fast this process calls a target, and halves the rate of all processes when the target is busy. The
 * shared rate is cut at most once a second, however many calls are rejected.
 */
export type PushPace = Readonly<{
  noteStart(): void;
  noteEnd(): void;
  noteBusy(): void;
}>;

export type PushPaceDeps = Readonly<{
  clock: Clock;
  /** Processes that call the target, this one included. */
  replicas: () => number;
  slow: (measuredRate: number) => Promise<void>;
  onError: (error: unknown) => void;
}>;

/** The rate is measured over a second; slowing down more often would count one 429 twice. */
const slowEveryMs = 1000;

export function createPushPace({ clock, replicas, slow, onError }: PushPaceDeps): PushPace {
  const meter = createRateMeter(clock, replicas);
  let slowAgainAtMs = 0;
  let isSlowing = false;

  const slowDown = async (rate: number): Promise<void> => {
    isSlowing = true;
    await slow(rate).catch(onError);
    isSlowing = false;
    slowAgainAtMs = clock.monotonicMs() + slowEveryMs;
  };

  return {
    noteStart: () => meter.started(),
    noteEnd: () => meter.ended(),
    noteBusy() {
      if (isSlowing || clock.monotonicMs() < slowAgainAtMs) return;
      void slowDown(meter.rate());
    },
  };
}
