import type { Pool } from 'pg';
import { systemClock, type Clock } from '../kernel/clock.ts';
import { createUuidMaker } from '../kernel/uuid.ts';

/**
 * Ids of jobs that are made here and not by the database, which then has nothing to answer. The time in them is the
 * database's all the same: lists go by it, and services may have any clock.
 */
export type JobIds = Readonly<{
  /** Null where the time of the database is not known well enough. */
  next(): string | null;
  /** A job is about to be added with an id of the database's making, which says what time it is there. */
  ask(): Readonly<{ note(id: string): void }>;
}>;

/** So long the clocks of two machines go alike. */
const goodForMs = 60_000;
/**
 * What times may differ by. Where it is more a clock was set, or a machine has slept; and an answer that took longer
 * says what time it was.
 */
const toleratedMs = 1000;

/** As the database makes them by default. */
const version7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7/;

export function createJobIds(clock: Clock): JobIds {
  let aheadMs = 0;
  let noted: Readonly<{ atMs: number; wallMs: number }> | null = null;
  const databaseMs = (): number => clock.monotonicMs() + aheadMs;
  const newMaker = (): (() => string) =>
    createUuidMaker({ ...clock, now: () => new Date(Math.floor(databaseMs())) });
  let make = newMaker();
  return {
    next() {
      if (noted === null) return null;
      const passedMs = clock.monotonicMs() - noted.atMs;
      const hasWallJumped = Math.abs(clock.now().getTime() - noted.wallMs - passedMs) > toleratedMs;
      return passedMs > goodForMs || hasWallJumped ? null : make();
    },
    ask() {
      const askedMs = clock.monotonicMs();
      return {
        note(id) {
          if (clock.monotonicMs() - askedMs <= toleratedMs && version7.test(id)) set(id);
        },
      };
    },
  };

  function set(id: string): void {
    // The next one is to come after it.
    const nowMs = Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16) + 1;
    const isSetBack = nowMs < databaseMs() - toleratedMs;
    aheadMs = nowMs - clock.monotonicMs();
    // Ids grow within a maker, so one that has been ahead would stay there.
    if (isSetBack) make = newMaker();
    noted = { atMs: clock.monotonicMs(), wallMs: clock.now().getTime() };
  }
}

const idsOfPools = new WeakMap<Pool, JobIds>();

export function jobIdsOf(pool: Pool): JobIds {
  const ids = idsOfPools.get(pool) ?? createJobIds(systemClock);
  idsOfPools.set(pool, ids);
  return ids;
}
