import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { noError } from '../sources.ts';
import type { LeasedPartition } from './partitions-table.ts';
import type { Batch } from './split-fetched.ts';

/** SQL that moves a partition's position; the partition's row is `p`. */

/** The guard of every move: the lease is still ours, and the batch begins at the position. */
export function isLeasedAt({ id, lease }: LeasedPartition, from: bigint): Sql {
  return sql`p.id = ${id} AND p.lease_epoch = ${lease.epoch} AND p.next_offset = ${from}`;
}

export function moveTo({ next, log }: Batch): Sql {
  return sql`
    next_offset = ${next}::bigint,
    high_offset = GREATEST(p.high_offset, ${next}::bigint),
    backfill_until = CASE WHEN ${next}::bigint < p.backfill_until THEN p.backfill_until END,
    log_start = ${log.start}::bigint, log_end = ${log.end}::bigint,
    log_stable_end = ${log.stableEnd}::bigint,
    held_back_since = ${blockedSinceAfter({ end: sql`${log.end}::bigint`, stableEnd: sql`${log.stableEnd}::bigint` })},
    stored_at = clock_timestamp(), ${noError}`;
}

/**
 * Since when the stable end has not moved although the log continues behind it: a transaction has been open at least
 * that long. Reads the row as it was before the statement.
 */
export function blockedSinceAfter({ end, stableEnd }: Readonly<{ end: Sql; stableEnd: Sql }>): Sql {
  return sql`CASE WHEN ${stableEnd} < ${end} THEN
    CASE WHEN p.log_stable_end = ${stableEnd} THEN COALESCE(p.held_back_since, clock_timestamp())
         ELSE clock_timestamp() END END`;
}

/** Adds the batch's offsets without a record to the counter of their kind. */
export function countSkipped(batch: Batch): Sql {
  const counts = { control: 0n, aborted: 0n, gap: 0n };
  for (const { kind, from, to } of batch.skipped) {
    const begin = from > batch.from ? from : batch.from;
    const end = to < batch.next ? to : batch.next;
    if (begin < end) counts[kind] += end - begin;
  }
  return sql`
    control = p.control + ${counts.control}::bigint, aborted = p.aborted + ${counts.aborted}::bigint,
    gaps = p.gaps + ${counts.gap}::bigint`;
}
