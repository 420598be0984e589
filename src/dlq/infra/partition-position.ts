import { sql, type Sql } from '../../platform/postgres/sql.ts';
import type { Batch, HeldPartition } from '../usecase/ports.ts';

/** The reader's position in SQL; the partition's table is `p`. */

/** The guard of every move: the lease is still ours, and the batch begins where the position stands. */
export function isHeldAt(held: HeldPartition, from: bigint): Sql {
  return sql`p.id = ${held.id} AND p.lease_epoch = ${held.lease.epoch} AND p.next_offset = ${from}`;
}

export function moveTo(batch: Batch): Sql {
  return sql`
    next_offset = ${batch.next}::bigint,
    high_offset = GREATEST(p.high_offset, ${batch.next}::bigint),
    backfill_until = CASE WHEN ${batch.next}::bigint < p.backfill_until THEN p.backfill_until END,
    log_start = ${batch.logStart}::bigint, log_end = ${batch.logEnd}::bigint,
    stored_at = clock_timestamp(), last_error = NULL, last_error_at = NULL`;
}

/** Offsets of the batch that hold no record: control records, aborted ones, what compaction has removed. */
export function notRecords(batch: Batch): bigint {
  return batch.next - batch.from - BigInt(batch.letters.length);
}
