import type { Clock } from '../../kernel/clock.ts';
import type { Queryable } from './database.ts';
import { sql } from './sql.ts';

/**
 * Whether connections may keep a statement ready that goes by keys through tables which may be empty today and have
 * millions of rows tomorrow. The plan that they keep with it is one for the tables as they were: made while they are
 * small it may read the whole of them. So it is kept only while all of them are so large that no such plan is made,
 * and for a while not after one that took long.
 */
export type KeptReady = Readonly<{
  run<T>(work: (isPrepared: boolean) => Promise<T>): Promise<T>;
}>;

/** A few hundred pages: to read them is dearer than to look up what a statement expects, however it is counted. */
const largeBytes = 2 * 1024 * 1024;
const lookEveryMs = 250;
const lookAgainAfterMs = 5000;
const slowMs = 500;
const notAfterSlowMs = 120_000;

export function createKeptReady(db: Queryable, clock: Clock, tables: readonly string[]): KeptReady {
  let areLarge = false;
  let lookAtMs = 0;
  let notBeforeMs = 0;

  const look = async (): Promise<void> => {
    try {
      const [row] = await db.query<{ are_large: boolean }>(sql`
        SELECT bool_and(pg_relation_size(name::regclass) >= ${largeBytes}) AS are_large
        FROM unnest(${tables}::text[]) AS name`);
      areLarge = row?.are_large === true;
    } catch {
      areLarge = false;
    }
  };

  return {
    async run(work) {
      const begin = clock.monotonicMs();
      if (begin >= lookAtMs) {
        lookAtMs = begin + (areLarge ? lookAgainAfterMs : lookEveryMs);
        void look();
      }
      const isPrepared = areLarge && begin >= notBeforeMs;
      try {
        return await work(isPrepared);
      } finally {
        const end = clock.monotonicMs();
        if (isPrepared && end - begin > slowMs) notBeforeMs = end + notAfterSlowMs;
      }
    },
  };
}
