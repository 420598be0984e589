import type { Clock } from '../../kernel/clock.ts';
import { takeTokens, windowAt, windowEndsInMs } from '../../kernel/targets/throttle.ts';
import type { SharedState } from './shared-state.ts';

/**
 * This process's tokens for the current window of a throttle. They are taken once per window, in the background, and
 * expire with it. On the monotonic clock a window ends up to a round trip early, and the next one starts up to a round
 * trip late: no process sends in one window with the tokens of another.
 */
export type ThrottleTokens = Readonly<{
  /** Up to `wanted` tokens; or none, and when to ask again. */
  spend: (wanted: number) => Spending;
  giveBack: (windowAtMs: number | null, tokens: number) => void;
}>;

export type Spending =
  | Readonly<{ tokens: number; windowAtMs: number }>
  | Readonly<{ tokens: 0; nextInMs: number | 'taking' }>;

export type ThrottleTokensDeps = Readonly<{
  shared: SharedState;
  clock: Clock;
  replicas: () => number;
  /** There are tokens, or the throttle has ended. */
  onTaken: () => void;
}>;

export function createThrottleTokens(deps: ThrottleTokensDeps): ThrottleTokens {
  const { shared, clock, replicas, onTaken } = deps;
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
      // Without a throttle no tokens are kept: a throttle that comes back must not find any.
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
