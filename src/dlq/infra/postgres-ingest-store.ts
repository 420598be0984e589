import { trace } from '@opentelemetry/api';
import { codeOf } from '../../kernel/errors.ts';
import { remainingMs } from '../../kernel/lease.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { persist } from '../../platform/postgres/persist.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { Worker } from '../../platform/postgres/work.ts';
import { withSpan } from '../../platform/telemetry/tracing.ts';
import type { NewMessage } from '../domain/arrivals.ts';
import { undecodable, type DeadLetter } from '../domain/dead-letter.ts';
import type { Batch, HeldPartition, IngestStore } from '../usecase/ports.ts';
import { arrivingRows, type ArrivingOptions } from './arriving-rows.ts';
import { isHeldAt, moveTo, notRecords } from './partition-position.ts';
import { storeTraced } from './store-traced.ts';

const tracer = trace.getTracer('redrive');

/**
 * Stores a batch and moves the partition's position, both or neither. The position's row is locked first and
 * must still have our epoch and stand where the batch begins: a replica that lost the lease, or a batch that
 * is already stored, changes nothing. So every record is stored exactly once.
 */
export function createPostgresIngestStore(
  db: Database,
  worker: Worker,
  options: ArrivingOptions,
): IngestStore {
  return {
    async store(held, batch, plan) {
      const storePart = async (part: Batch): Promise<boolean> => {
        const ids =
          plan === null
            ? await storeFresh(db, held, part, options)
            : await db.transaction((tx) => storeTraced(tx, { held, batch: part, plan, options }));
        if (ids !== null && ids.length > 0) options.onStored(held.topic, ids);
        return ids !== null;
      };
      if (batch.letters.length === 0) return storePart(batch);
      const { topic, partition } = held;
      return withSpan(tracer, 'store', { slice: 'dlq', topic, partition, items: batch.letters.length }, () =>
        storeInParts(batch, {
          storePart,
          undecodable: (letter, error) => undecodable(letter, held.topic, codeOf(error) ?? 'unknown'),
          until: AbortSignal.timeout(Math.max(1, Math.ceil(remainingMs(held.lease, worker.clock)))),
        }),
      );
    },

    async skipLost(held, logStart) {
      // What lies below the greatest position ever reached was counted when it was read first.
      const rows = await db.query(sql`
        UPDATE dlq.source_partitions p
        SET lost = p.lost + GREATEST(0, ${logStart}::bigint - p.high_offset)
              + CASE WHEN p.next_offset < p.backfill_until
                  THEN LEAST(${logStart}::bigint, p.backfill_until) - p.next_offset ELSE 0 END,
            backfill_until = CASE WHEN ${logStart}::bigint < p.backfill_until THEN p.backfill_until END,
            next_offset = ${logStart}::bigint,
            high_offset = GREATEST(p.high_offset, ${logStart}::bigint),
            log_start = ${logStart}::bigint
        WHERE ${isHeldAt(held, held.nextOffset)} AND p.next_offset < ${logStart}::bigint
        RETURNING p.id`);
      return rows.length === 1;
    },
  };
}

/** Thrown inside, to end the halving at once when the partition is no longer ours. */
class PositionLost extends Error {}

/** The whole batch in one go; only if the database refuses its data, in ever smaller parts, in order. */
async function storeInParts(
  batch: Batch,
  how: Readonly<{
    storePart: (part: Batch) => Promise<boolean>;
    undecodable: (letter: DeadLetter, error: unknown) => DeadLetter;
    until: AbortSignal;
  }>,
): Promise<boolean> {
  let from = batch.from;
  const storeLetters = async (letters: readonly DeadLetter[]): Promise<void> => {
    const last = letters.at(-1)?.record.offset ?? from;
    const isEnd = last === batch.letters.at(-1)?.record.offset;
    const next = isEnd ? batch.next : last + 1n;
    if (!(await how.storePart({ ...batch, from, next, letters }))) throw new PositionLost();
    from = next;
  };
  try {
    await persist(batch.letters, {
      store: storeLetters,
      storeCulprit: (letter, error) => storeLetters([how.undecodable(letter, error)]),
      until: how.until,
    });
    return true;
  } catch (error) {
    if (error instanceof PositionLost) return false;
    throw error;
  }
}

/** The common case in one statement: every record is new, so there is nothing to look up. */
async function storeFresh(
  db: Queryable,
  held: HeldPartition,
  batch: Batch,
  options: ArrivingOptions,
): Promise<readonly string[] | null> {
  const fresh = batch.letters.map((letter): NewMessage => ({
    letter,
    status: 'PENDING',
    retryCount: 0,
    parentId: null,
  }));
  const { ids, columns, select } = arrivingRows(held, fresh, options);
  const rows = await db.query(sql`
    WITH held AS MATERIALIZED (
      SELECT p.id FROM dlq.source_partitions p WHERE ${isHeldAt(held, batch.from)} FOR UPDATE
    ), stored AS (
      INSERT INTO dlq.dlq_messages (${columns}) ${select}
      WHERE EXISTS (SELECT 1 FROM held)
      ON CONFLICT (source_topic_id, source_partition, source_offset) DO NOTHING
      RETURNING 1
    ), counted AS (
      SELECT count(*) AS stored FROM stored
    )
    UPDATE dlq.source_partitions p
    SET stored = p.stored + counted.stored,
        folded = p.folded + (${batch.letters.length} - counted.stored),
        not_records = p.not_records + ${notRecords(batch)}::bigint,
        ${moveTo(batch)}
    FROM held, counted
    WHERE p.id = held.id
    RETURNING p.id`);
  return rows.length === 1 ? ids : null;
}
