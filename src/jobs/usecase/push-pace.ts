import type { Clock } from '../../kernel/clock.ts';
import { countSent, emptyMeter, measuredRate } from '../../kernel/throttle.ts';

/**
 * Measures how fast this process calls a target, and tells all processes when the target says that it is too fast.
 * The shared rate is cut once a second at most, so that is how often it is told, however many calls are refused.
 */
export type PushPace = Readonly<{
  noteStart(): void;
  noteEnd(): void;
  noteBusy(): void;
}>;

export type PushPaceDeps = Readonly<{
  clock: Clock;
  /** Processes that call the target; they are taken to be as fast as this one. */
  replicas: () => number;
  slow: (measuredRate: number) => Promise<void>;
  onError: (error: unknown) => void;
}>;

const tellEveryMs = 1000;

export function createPushPace({ clock, replicas, slow, onError }: PushPaceDeps): PushPace {
  let begun = emptyMeter;
  let ended = emptyMeter;
  let tellAgainAtMs = 0;
  let isTelling = false;

  const tell = async (rate: number): Promise<void> => {
    isTelling = true;
    await slow(rate).catch(onError);
    isTelling = false;
    tellAgainAtMs = clock.monotonicMs() + tellEveryMs;
  };

  return {
    noteStart: () => void (begun = countSent(begun, 1, clock.monotonicMs())),
    noteEnd: () => void (ended = countSent(ended, 1, clock.monotonicMs())),
    noteBusy() {
      const nowMs = clock.monotonicMs();
      if (isTelling || nowMs < tellAgainAtMs) return;
      // By what was begun as much as by what has ended: a refusal is often quicker than the work before it.
      const own = Math.max(measuredRate(begun, nowMs), measuredRate(ended, nowMs));
      void tell(own * Math.max(1, replicas()));
    },
  };
}
