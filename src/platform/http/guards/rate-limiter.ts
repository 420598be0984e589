import { minuteMs } from '../../../kernel/duration.ts';

/** Counts events by key in windows of a minute, each beginning with the first event of its key. */
export type RateLimiter = Readonly<{
  /** Counts an event. Zero if it is within the limit, else the time until the window ends. */
  take(key: string): number;
}>;

export type RateLimiterOptions = Readonly<{
  perMinute: number;
  /** Above it the oldest windows are forgotten, so that many keys cost no memory. */
  maxKeys?: number;
  nowMs?: () => number;
}>;

type Window = { count: number; readonly endsAtMs: number };

export function createRateLimiter(options: RateLimiterOptions): RateLimiter {
  const { perMinute, maxKeys = 10_000, nowMs = () => performance.now() } = options;
  /** In the order of their ends, because all are equally long. */
  const windows = new Map<string, Window>();

  const forgetOld = (now: number): void => {
    for (const [key, { endsAtMs }] of windows) {
      if (endsAtMs > now && windows.size < maxKeys) return;
      windows.delete(key);
    }
  };

  const open = (key: string, now: number): Window => {
    windows.delete(key);
    forgetOld(now);
    const window = { count: 0, endsAtMs: now + minuteMs };
    windows.set(key, window);
    return window;
  };

  return {
    take(key) {
      const now = nowMs();
      const known = windows.get(key);
      const window = known !== undefined && known.endsAtMs > now ? known : open(key, now);
      window.count += 1;
      return window.count <= perMinute ? 0 : window.endsAtMs - now;
    },
  };
}
