import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { NewMessage } from '../domain/arrivals.ts';
import { messageRows, type RowOptions } from './message-rows.ts';
import { countSkipped, isLeasedAt, moveTo } from './partition-position.ts';
import type { LeasedPartition } from './partitions-table.ts';
import type { Batch } from './split-fetched.ts';

/**
 * The usual case in one statement: every record is new, so there is nothing to look up. The partition's row is locked
 * first and must still have our epoch and the position where the batch begins: a replica that lost the lease, or a
 * batch that is already stored, changes nothing. So every record is stored exactly once. Returns the ids of the new
 * messages, or null if nothing was stored.
 */
export async function insertBatch(
  deps: RowOptions & Readonly<{ db: Database }>,
  leased: LeasedPartition,
  batch: Batch,
): Promise<readonly string[] | null> {
  const messages = batch.letters.map((letter): NewMessage => ({
    letter,
    status: 'PENDING',
    retryCount: 0,
    parentId: null,
  }));
  const { ids, columns, select, staging } = messageRows(leased, messages, deps);
  const statement = sql`
    WITH leased AS MATERIALIZED (
      SELECT p.id FROM dlq.source_partitions p WHERE ${isLeasedAt(leased, batch.from)} FOR UPDATE
    ), stored AS (
      INSERT INTO dlq.dlq_messages (${columns}) ${select}
      WHERE EXISTS (SELECT 1 FROM leased)
      ON CONFLICT (source_topic_id, source_partition, source_offset) DO NOTHING
      RETURNING 1
    ), counted AS (
      SELECT count(*) AS stored FROM stored
    )
    UPDATE dlq.source_partitions p
    SET stored = p.stored + counted.stored,
        folded = p.folded + (${batch.letters.length} - counted.stored),
        ${countSkipped(batch)},
        ${moveTo(batch)}
    FROM leased, counted
    WHERE p.id = leased.id
    RETURNING p.id`;
  const store = async (tx: Queryable): Promise<readonly string[] | null> =>
    (await tx.query(statement)).length === 1 ? ids : null;
  if (staging === null) return store(deps.db);
  return deps.db.transaction(async (tx) => {
    await staging.put(tx);
    const stored = await store(tx);
    await staging.remove(tx);
    return stored;
  });
}
