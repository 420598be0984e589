import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { reap } from '../../platform/work/work.ts';
import { RUNS_ALONE_FROM } from '../domain/failed-rounds.ts';
import { isActive, sagas } from '../saga-table.ts';

const batchSize = 500;

/** Releases sagas whose lease has expired, as failed rounds; returns how many. */
export async function reapSagas(db: Queryable): Promise<number> {
  const rows = await reap<{ id: string }>(db, sagas, {
    where: sql`t.lease_owner IS NOT NULL`,
    limit: batchSize,
    set: sql`
      wake_at = CASE WHEN ${isActive} AND NOT t.needs_attention THEN clock_timestamp() END,
      failed_rounds = t.failed_rounds + 1, runs_alone = t.runs_alone OR t.failed_rounds + 1 >= ${RUNS_ALONE_FROM}`,
    returning: sql`t.id`,
  });
  return rows.length;
}
