import type { PartitionRef } from '../kernel/broker-record.ts';
import type { NameFilter } from '../kernel/access/scope.ts';
import { AppError } from '../kernel/errors.ts';
import { scopeOfPath } from '../platform/http/access/item-scope.ts';
import type { ItemScope } from '../platform/http/access/route-access.ts';
import type { Queryable } from '../platform/postgres/database.ts';
import { isNamed } from '../platform/postgres/is-named.ts';
import { sql, type Sql } from '../platform/postgres/sql.ts';
import { dateOrNull, epochMs } from './instant.ts';

/** The channel on which readers wait for partitions that were released or moved. */
export const partitionsChannel = 'dlq_partitions';

/** A partition of a dead-letter topic: its position, its counters and its lease. */
export type SourcePartition = PartitionRef &
  Readonly<{
    clusterId: string;
    firstOffset: bigint;
    nextOffset: bigint;
    highOffset: bigint;
    backfillUntil: bigint | null;
    logStart: bigint | null;
    logEnd: bigint | null;
    logStableEnd: bigint | null;
    /** Since when an open transaction has blocked reading; null while it does not. */
    blockedSince: Date | null;
    /** By the database's clock; 0 while nothing blocks reading. */
    blockedSeconds: number;
    stored: bigint;
    reopened: bigint;
    folded: bigint;
    control: bigint;
    aborted: bigint;
    gaps: bigint;
    /** Offsets without a record that were counted before their kinds were told apart. */
    unsorted: bigint;
    lost: bigint;
    reread: bigint;
    lastError: string | null;
    lastErrorAt: Date | null;
    isGone: boolean;
    isStopped: boolean;
    leaseOwner: string | null;
    leaseIsLive: boolean;
    storedAt: Date | null;
    lastSeek: LastSeek | null;
  }>;

export type LastSeek = Readonly<{ at: string; actor: string; reason: string; from: string; to: string }>;

type SourceRow = Omit<SourcePartition, 'blockedSince' | 'lastErrorAt' | 'storedAt'> &
  Readonly<{ blockedSince: number | null; lastErrorAt: number | null; storedAt: number | null }>;

/** Of all clusters. */
export async function listSources(
  db: Queryable,
  names: NameFilter = null,
): Promise<readonly SourcePartition[]> {
  const rows = await db.query<SourceRow>(sql`
    SELECT p.cluster_id AS "clusterId", p.topic, p.topic_id AS "topicId", p.partition,
           p.first_offset AS "firstOffset", p.next_offset AS "nextOffset", p.high_offset AS "highOffset",
           p.backfill_until AS "backfillUntil", p.log_start AS "logStart", p.log_end AS "logEnd",
           p.log_stable_end AS "logStableEnd", ${epochMs(openTransactionSince)} AS "blockedSince",
           COALESCE(GREATEST(extract(epoch FROM clock_timestamp() - ${openTransactionSince}), 0), 0)::float8 AS "blockedSeconds",
           p.stored, p.reopened, p.folded, p.control, p.aborted, p.gaps, p.not_records AS unsorted, p.lost, p.reread,
           p.last_error AS "lastError", ${epochMs(sql`p.last_error_at`)} AS "lastErrorAt", p.gone AS "isGone",
           p.stopped AS "isStopped", p.lease_owner AS "leaseOwner", ${epochMs(sql`p.stored_at`)} AS "storedAt",
           p.last_seek AS "lastSeek",
           COALESCE(p.lease_until > clock_timestamp(), false) AS "leaseIsLive"
    FROM dlq.source_partitions p
    WHERE p.forgotten IS NULL AND ${isNamed(sql`p.topic`, names)}
    ORDER BY p.topic, p.partition, p.id`);
  return rows.map(({ blockedSince, lastErrorAt, storedAt, ...row }) => ({
    ...row,
    blockedSince: dateOrNull(blockedSince),
    lastErrorAt: dateOrNull(lastErrorAt),
    storedAt: dateOrNull(storedAt),
  }));
}

/** Since when an open transaction has blocked reading; NULL while there are records before it to read. */
export const openTransactionSince: Sql = sql`CASE WHEN p.next_offset >= p.log_stable_end THEN p.held_back_since END`;

export const noError: Sql = sql`last_error = NULL, last_error_at = NULL, denied = false`;

/** Of a topic that was deleted and created again it finds the existing one. */
export async function findSource(
  db: Queryable,
  { topic, partition }: Readonly<{ topic: string; partition: number }>,
): Promise<SourcePartition> {
  const named = (await listSources(db)).filter((one) => one.topic === topic && one.partition === partition);
  const found = named.findLast((one) => !one.isGone) ?? named.at(-1);
  if (found === undefined) throw sourceNotFound({ topic, partition });
  return found;
}

export function sourceNotFound({
  topic,
  partition,
}: Readonly<{ topic: string; partition: number }>): AppError {
  return new AppError('SYS_DLQ_NOT_FOUND', 'not_found', `dlq source not found: ${topic}/${partition}`);
}

/** A role may be narrowed to topics; a dead-letter topic counts by its own name. Out of scope it is not found. */
export const sourceScope: ItemScope = {
  ...scopeOfPath('topics', 'topic'),
  notFound: ({ params }) => sourceNotFound(params as Readonly<{ topic: string; partition: number }>),
};

/**
 * Shows that no record is missing: every offset between the first position and the highest one ever reached is a
 * stored message, a known message that failed again, a repeat, a transaction marker, an aborted record, a gap left by
 * compaction, or lost to retention. Each was counted when it was read.
 */
export type SourceAccount = SourcePartition &
  Readonly<{
    /** The number of offsets read. */
    passed: bigint;
    /** How many of them the counters explain. */
    explained: bigint;
    isBalanced: boolean;
    /** Offsets without a record for us, of all kinds. */
    notRecords: bigint;
    /** Offsets that the broker has and we have not read; null if its end is unknown. */
    lag: bigint | null;
    /** The part of the lag that is not behind an open transaction. */
    stableLag: bigint | null;
  }>;

export async function accountSources(
  db: Queryable,
  names: NameFilter = null,
): Promise<readonly SourceAccount[]> {
  return (await listSources(db, names)).map(accountOf);
}

function accountOf(partition: SourcePartition): SourceAccount {
  const { firstOffset, nextOffset, highOffset, backfillUntil } = partition;
  const stillToFill = backfillUntil !== null && nextOffset < backfillUntil ? backfillUntil - nextOffset : 0n;
  const passed = highOffset - firstOffset - stillToFill;
  const explained =
    partition.stored + partition.reopened + partition.folded + notRecordsOf(partition) + partition.lost;
  // A deleted topic has nothing left to read; an end that is older than our last batch means no lag.
  const lagTo = (end: bigint | null): bigint | null =>
    partition.isGone || end === null ? null : end < nextOffset ? 0n : end - nextOffset;
  return {
    ...partition,
    passed,
    explained,
    isBalanced: passed === explained,
    notRecords: notRecordsOf(partition),
    lag: lagTo(partition.logEnd),
    stableLag: lagTo(partition.logStableEnd),
  };
}

function notRecordsOf({ control, aborted, gaps, unsorted }: SourcePartition): bigint {
  return control + aborted + gaps + unsorted;
}
