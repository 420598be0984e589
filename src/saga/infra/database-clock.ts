import type { Clock } from '../../kernel/clock.ts';

/** The database's clock as this process knows it: what it said last, and how much time has passed since. */
export type DatabaseClock = Readonly<{
  now(): number;
  /** The database has just said what time it is. */
  note(nowMs: number): void;
}>;

export function createDatabaseClock(clock: Clock): DatabaseClock {
  let aheadMs = clock.now().getTime() - clock.monotonicMs();
  return {
    now: () => Math.round(clock.monotonicMs() + aheadMs),
    note: (nowMs) => void (aheadMs = nowMs - clock.monotonicMs()),
  };
}
