import { backoffMs } from '../../../kernel/backoff.ts';

/** Targets that do not accept messages now. The others go on. */
export type TargetBackoff = Readonly<{
  /** Nothing was written; `from` is the lowest position that has to be tried again. */
  fail(target: string, from: number, error: string): void;
  succeed(target: string): void;
  /** Targets to leave out now, sorted. */
  waiting(): readonly string[];
  /** The lowest position of a target that may be tried again since the last call; null without one. */
  takeReady(): number | null;
  /** A target that has accepted nothing for too long. */
  expired(): Readonly<{ target: string; error: string }> | null;
}>;

const backoff = { initialMs: 1000, maxMs: 30_000, jitter: 0 };

type Entry = {
  failures: number;
  sinceMs: number;
  untilMs: number;
  from: number;
  isReady: boolean;
  error: string;
};

export function createTargetBackoff(
  nowMs: () => number,
  { giveUpAfterMs }: Readonly<{ giveUpAfterMs: number }>,
): TargetBackoff {
  const entries = new Map<string, Entry>();
  return {
    fail(target, from, error) {
      const before = entries.get(target);
      const failures = (before?.failures ?? 0) + 1;
      entries.set(target, {
        failures,
        sinceMs: before?.sinceMs ?? nowMs(),
        untilMs: nowMs() + backoffMs(backoff, failures),
        from: before === undefined || before.isReady ? from : Math.min(before.from, from),
        isReady: false,
        error,
      });
    },
    succeed: (target) => void entries.delete(target),
    waiting: () =>
      [...entries]
        .filter(([, { isReady }]) => !isReady)
        .map(([target]) => target)
        .toSorted(),
    takeReady() {
      let lowest: number | null = null;
      for (const entry of entries.values()) {
        if (entry.isReady || entry.untilMs > nowMs()) continue;
        entry.isReady = true;
        lowest = Math.min(lowest ?? entry.from, entry.from);
      }
      return lowest;
    },
    expired() {
      for (const [target, { sinceMs, error }] of entries)
        if (nowMs() - sinceMs >= giveUpAfterMs) return { target, error };
      return null;
    },
  };
}
