import type { Clock } from '../../kernel/clock.ts';

/** Estimates the database's clock: its last known time plus the time elapsed since. */
export type DatabaseClock = Readonly<{
  now(): number;
  /** Records a time that was just read from the database. */
  note(nowMs: number): void;
}>;

export function createDatabaseClock(clock: Clock): DatabaseClock {
  let aheadMs = clock.now().getTime() - clock.monotonicMs();
  return {
    now: () => Math.round(clock.monotonicMs() + aheadMs),
    note: (nowMs) => void (aheadMs = nowMs - clock.monotonicMs()),
  };
}
