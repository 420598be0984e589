import type { PartitionStore, SourcePartition } from './ports.ts';

/**
 * The proof that nothing is missing: every offset between the first position and the greatest one ever reached
 * is a stored message, a known one that failed again, a repeat, no record at all, or lost to retention.
 */
export type PartitionAccount = SourcePartition &
  Readonly<{
    /** How many offsets have been passed. */
    passed: bigint;
    /** How many of them are explained by the counters. */
    explained: bigint;
    isBalanced: boolean;
    /** What the broker has and we have not read yet; null when its end is not known. */
    lag: bigint | null;
  }>;

export async function accountSources(partitions: PartitionStore): Promise<readonly PartitionAccount[]> {
  return (await partitions.list()).map(accountOf);
}

function accountOf(partition: SourcePartition): PartitionAccount {
  const { firstOffset, nextOffset, highOffset, backfillUntil, logEnd } = partition;
  const stillToFill = backfillUntil !== null && nextOffset < backfillUntil ? backfillUntil - nextOffset : 0n;
  const passed = highOffset - firstOffset - stillToFill;
  const explained =
    partition.stored + partition.reopened + partition.folded + partition.notRecords + partition.lost;
  const behind = logEnd === null ? null : logEnd - nextOffset;
  return {
    ...partition,
    passed,
    explained,
    isBalanced: passed === explained,
    // A topic that is gone has nothing left to read; an end that was told before our last batch is not behind.
    lag: partition.isGone || behind === null ? null : behind < 0n ? 0n : behind,
  };
}
