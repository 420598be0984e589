import type { Clock } from '../../kernel/clock.ts';
import { takeTokens, windowAt, windowEndsInMs } from '../../kernel/throttle.ts';
import type { SharedState } from './shared-state.ts';

/**
 * This process's tokens for the window under way. They are taken once a window, in the background, and are worth
 * nothing beyond it. By the monotonic clock a window ends a round trip too early, and the next one begins a round
 * trip too late at most: nobody sends in a window with the tokens of another.
 */
export type TokenPurse = Readonly<{
  /** Up to `wanted` of them; or none, and when it is worth asking again. */
  spend: (wanted: number) => Spending;
  giveBack: (windowAtMs: number | null, tokens: number) => void;
}>;

export type Spending =
  | Readonly<{ tokens: number; windowAtMs: number }>
  | Readonly<{ tokens: 0; nextInMs: number | 'taking' }>;

export type TokenPurseDeps = Readonly<{
  shared: SharedState;
  clock: Clock;
  replicas: () => number;
  /** There are tokens, or there is no throttle any more. */
  onTaken: () => void;
}>;

export function createTokenPurse({ shared, clock, replicas, onTaken }: TokenPurseDeps): TokenPurse {
  let window = { atMs: 0, left: 0, endsAtMs: 0, nextAtMs: 0 };

  const taking = shared.inBackground(async () => {
    const taken = await shared.change(({ throttle, circuit }, nowMs) => {
      const taking = takeTokens(throttle, replicas(), nowMs);
      return { state: { throttle: taking.throttle, circuit }, result: { tokens: taking.tokens, nowMs } };
    });
    if (taken === undefined) return;
    const { tokens, nowMs } = taken.result;
    const endsInMs = windowEndsInMs(nowMs);
    window = {
      atMs: windowAt(nowMs),
      // Without a throttle there are no tokens: one that comes back finds the purse empty.
      left: tokens === Infinity ? 0 : tokens,
      // The database's clock was read in whole milliseconds, rounded down.
      endsAtMs: taken.askedAtMs + endsInMs - 1,
      nextAtMs: taken.answeredAtMs + endsInMs,
    };
    if (tokens > 0) onTaken();
  });

  return {
    spend: (wanted) => {
      const nowMs = clock.monotonicMs();
      if (window.left > 0 && nowMs < window.endsAtMs) {
        const tokens = Math.min(wanted, window.left);
        window.left -= tokens;
        return { tokens, windowAtMs: window.atMs };
      }
      if (nowMs < window.nextAtMs) return { tokens: 0, nextInMs: window.nextAtMs - nowMs };
      taking.begin();
      return { tokens: 0, nextInMs: 'taking' };
    },
    giveBack: (windowAtMs, tokens) => {
      if (windowAtMs === window.atMs) window.left += tokens;
    },
  };
}
