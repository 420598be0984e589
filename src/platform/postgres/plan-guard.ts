import type { Clock } from '../../kernel/clock.ts';

/**
 * Decides whether a statement is sent as a prepared one. PostgreSQL may keep the plan of a prepared statement from when
 * its tables were small, until the next ANALYZE. A run that took long may be due to such a plan, so for the next two
 * minutes, in which autovacuum analyzes tables that have grown, the statement is planned each time.
 */
export type PlanGuard = Readonly<{
  run<T>(work: (isPrepared: boolean) => Promise<T>): Promise<T>;
}>;

/** The guarded statements take a few milliseconds; this is a plan for a table that has changed. */
const slowMs = 100;
/** Until then autovacuum has usually analyzed the table, and a new plan is good again. */
const unpreparedForMs = 120_000;

export function createPlanGuard(clock: Clock): PlanGuard {
  let preparedFromMs = 0;
  return {
    async run(work) {
      const startMs = clock.monotonicMs();
      const isPrepared = startMs >= preparedFromMs;
      try {
        return await work(isPrepared);
      } finally {
        const endMs = clock.monotonicMs();
        if (isPrepared && endMs - startMs > slowMs) preparedFromMs = endMs + unpreparedForMs;
      }
    },
  };
}
