import type { LogEnds, PartitionRef, SkippedRange } from '../../kernel/broker-record.ts';
import type { FetchedBatch } from '../../platform/broker/port.ts';
import type { DeadLetter } from '../domain/dead-letter.ts';
import type { LeasedPartition } from './partitions-table.ts';

export type Fetched = Omit<FetchedBatch, keyof PartitionRef>;

/** What one transaction stores: the dead letters in [from, next). */
export type Batch = Readonly<{
  from: bigint;
  next: bigint;
  letters: readonly DeadLetter[];
  /** Offsets without a record; ranges may reach beyond the batch. */
  skipped: readonly SkippedRange[];
  log: LogEnds;
}>;

/** Larger statements are not faster, hold locks longer and take more memory. */
const maxRows = 1000;
const maxBytes = 8 << 20;

/**
 * Splits a fetched range into batches that are not too large and do not cross the two borders that change how records
 * are counted: the end of a backfill, and the highest position ever reached.
 */
export function splitFetched(
  leased: LeasedPartition,
  letters: readonly DeadLetter[],
  fetched: Fetched,
): readonly Batch[] {
  const borders = [leased.backfillUntil, leased.highOffset].filter(
    (border): border is bigint =>
      border !== null && border > leased.nextOffset && border < fetched.nextOffset,
  );
  const { skipped, start, end, stableEnd } = fetched;
  const batches: Batch[] = [];
  let from = leased.nextOffset;
  let rest = letters;
  const cut = (next: bigint, count: number): void => {
    batches.push({ from, next, letters: rest.slice(0, count), skipped, log: { start, end, stableEnd } });
    rest = rest.slice(count);
    from = next;
  };
  for (const border of [...borders, fetched.nextOffset]) {
    const inside = rest.findIndex((letter) => letter.record.offset >= border);
    let left = inside === -1 ? rest.length : inside;
    for (let count = countFitting(rest, left); count < left; count = countFitting(rest, left)) {
      left -= count;
      cut(rest[count]?.record.offset ?? border, count);
    }
    if (from < border) cut(border, left);
  }
  return batches;
}

/** How many of the first `left` letters fit into one statement: at least one, however large it is. */
function countFitting(letters: readonly DeadLetter[], left: number): number {
  const most = Math.min(left, maxRows);
  let bytes = 0;
  for (let count = 0; count < most; count += 1) {
    const { key, value } = letters[count]?.record ?? { key: null, value: null };
    bytes += (key?.length ?? 0) + (value?.length ?? 0);
    if (bytes > maxBytes && count > 0) return count;
  }
  return most;
}
