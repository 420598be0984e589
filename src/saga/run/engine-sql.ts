import type { Database } from '../../platform/postgres/database.ts';
import { renew, type Worker } from '../../platform/work/work.ts';
import { sagas } from '../saga-table.ts';
import type { AddEvents } from '../write-sagas.ts';
import { createSagaClaims, hasDueAlone, nextDueInMs } from './claim-sagas.ts';
import type { DatabaseClock } from './database-clock.ts';
import { failRound } from './release-sagas.ts';
import type { EngineDeps } from './run-sagas.ts';
import { createSettle, createSettleBatch } from './settle-sagas.ts';

export type EngineSqlDeps = Readonly<{
  db: Database;
  worker: Worker;
  time: DatabaseClock;
  /** Null if events are not published. */
  addEvents: AddEvents | null;
}>;

/** What the engine does in the database. */
export function engineSql(
  deps: EngineSqlDeps,
): Pick<EngineDeps, 'claim' | 'hasDueAlone' | 'nextDueInMs' | 'settle' | 'failRound' | 'renew'> {
  const { db, worker } = deps;
  return {
    claim: createSagaClaims(deps),
    hasDueAlone: () => hasDueAlone(db),
    nextDueInMs: () => nextDueInMs(deps),
    settle: createSettle(createSettleBatch(deps), worker.clock),
    failRound: (saga) => failRound(db, saga),
    renew: (leased, leaseMs) => renew(worker, sagas, leased, { keyOf: ({ id }) => id, leaseMs }),
  };
}
