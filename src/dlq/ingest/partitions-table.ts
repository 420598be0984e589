import type { LogEnds, PartitionRef } from '../../kernel/broker-record.ts';
import type { Lease } from '../../kernel/lease.ts';
import type { Queryable } from '../../platform/postgres/database.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { countReplicas } from '../../platform/work/replicas.ts';
import { notify } from '../../platform/work/wake.ts';
import {
  claim,
  leaseIsOver,
  release,
  renew,
  type Renewed,
  type Worker,
  type WorkTable,
} from '../../platform/work/work.ts';
import { noError, partitionsChannel } from '../sources.ts';
import { blockedSinceAfter, isLeasedAt } from './partition-position.ts';

/** Partitions are claimed, renewed and released by the shared mechanism, like any other work. */
const partitions: WorkTable = {
  slice: 'dlq',
  table: sql`dlq.source_partitions`,
  key: sql`id`,
  keyArray: sql`bigint[]`,
};

/** A leased partition and its position. */
export type LeasedPartition = PartitionRef &
  Readonly<{
    id: bigint;
    lease: Lease;
    nextOffset: bigint;
    /** The highest position ever reached. */
    highOffset: bigint;
    /** After a seek to before the first position: where the backfill ends. */
    backfillUntil: bigint | null;
  }>;

export async function listKnownPartitions(
  db: Queryable,
  clusterId: string,
): Promise<readonly Readonly<PartitionRef & { isGone: boolean }>[]> {
  return db.query(sql`
    SELECT topic, topic_id AS "topicId", partition, gone AS "isGone" FROM dlq.source_partitions
    WHERE cluster_id = ${clusterId}`);
}

export async function addPartitions(
  db: Queryable,
  clusterId: string,
  found: readonly Readonly<PartitionRef & { firstOffset: bigint }>[],
): Promise<void> {
  await db.query(sql`
    INSERT INTO dlq.source_partitions
      (cluster_id, topic, topic_id, partition, first_offset, next_offset, high_offset)
    SELECT ${clusterId}, topic, topic_id, partition, first_offset, first_offset, first_offset
    FROM unnest(
      ${found.map((one) => one.topic)}::text[], ${found.map((one) => one.topicId)}::uuid[],
      ${found.map((one) => one.partition)}::int[], ${found.map((one) => one.firstOffset)}::bigint[]
    ) AS found (topic, topic_id, partition, first_offset)
    ON CONFLICT DO NOTHING`);
}

/**
 * Stores the log ends that the broker reported. Partitions that it did not list are marked as gone, except those of
 * topics that could not be examined. Skips locked rows.
 */
export async function observePartitions(
  db: Queryable,
  clusterId: string,
  {
    found,
    unknownTopics,
  }: Readonly<{
    found: readonly Readonly<PartitionRef & LogEnds>[];
    unknownTopics: ReadonlySet<string>;
  }>,
): Promise<void> {
  await db.query(sql`
    WITH found AS (
      SELECT * FROM unnest(
        ${found.map((one) => one.topicId)}::uuid[], ${found.map((one) => one.partition)}::int[],
        ${found.map((one) => one.start)}::bigint[], ${found.map((one) => one.end)}::bigint[],
        ${found.map((one) => one.stableEnd)}::bigint[]
      ) AS found (topic_id, partition, log_start, log_end, log_stable_end)
    ), locked AS MATERIALIZED (
      SELECT p.id FROM dlq.source_partitions p WHERE p.cluster_id = ${clusterId} ORDER BY p.id FOR UPDATE SKIP LOCKED
    )
    UPDATE dlq.source_partitions p
    SET gone = found.topic_id IS NULL,
        forgotten = CASE WHEN found.topic_id IS NULL THEN p.forgotten END,
        log_start = COALESCE(found.log_start, p.log_start), log_end = COALESCE(found.log_end, p.log_end),
        log_stable_end = COALESCE(found.log_stable_end, p.log_stable_end),
        held_back_since = ${blockedSinceAfter({ end: sql`found.log_end`, stableEnd: sql`found.log_stable_end` })}
    FROM locked
    JOIN dlq.source_partitions q ON q.id = locked.id
    LEFT JOIN found ON found.topic_id = q.topic_id AND found.partition = q.partition
    WHERE p.id = locked.id
      AND (found.topic_id IS NOT NULL OR NOT (p.topic = ANY(${[...unknownTopics]}::text[])))
      AND (p.gone, p.forgotten IS NOT NULL AND found.topic_id IS NOT NULL, p.log_start, p.log_end, p.log_stable_end, p.held_back_since IS NOT NULL) IS DISTINCT FROM
          (found.topic_id IS NULL, false, COALESCE(found.log_start, p.log_start), COALESCE(found.log_end, p.log_end),
           COALESCE(found.log_stable_end, p.log_stable_end), COALESCE(found.log_stable_end < found.log_end, false))`);
}

/** A local broker's topics end with its process; deletes the partitions of all but ours and running ones. */
export async function deleteLocalPartitions(db: Queryable, ourClusterId: string): Promise<void> {
  await db.query(sql`
    DELETE FROM dlq.source_partitions p
    WHERE p.cluster_id LIKE 'local-%' AND p.cluster_id <> ${ourClusterId} AND NOT EXISTS (
      SELECT 1 FROM platform.replicas r
      WHERE r.kafka_cluster_id = p.cluster_id AND r.seen_at > clock_timestamp() - interval '15 seconds')`);
}

/** How many partitions one replica should read. */
export async function readShare(db: Queryable, clusterId: string): Promise<number> {
  const replicas = await countReplicas(db, { role: 'ingest', clusterId });
  const rows = await db.query<{ count: bigint }>(sql`
    SELECT count(*) AS count FROM dlq.source_partitions
    WHERE cluster_id = ${clusterId} AND NOT gone AND NOT stopped AND forgotten IS NULL`);
  return Math.ceil(Number(rows[0]?.count ?? 0n) / Math.max(1, replicas));
}

export async function claimPartitions(
  worker: Worker,
  { clusterId, limit, leaseMs }: Readonly<{ clusterId: string; limit: number; leaseMs: number }>,
): Promise<readonly LeasedPartition[]> {
  const { lease, rows } = await claim<PositionRow>(worker, partitions, {
    where: sql`t.cluster_id = ${clusterId} AND NOT t.gone AND NOT t.stopped AND t.forgotten IS NULL AND ${leaseIsOver}`,
    orderBy: sql`t.id`,
    limit,
    leaseMs,
    set: sql`lease_lost = false`,
    returning: positionColumns,
  });
  return rows.map((row) => ({ ...row, lease }));
}

type PositionRow = Omit<LeasedPartition, 'lease'>;

const positionColumns: Sql = sql`
  t.id, t.topic, t.topic_id AS "topicId", t.partition, t.next_offset AS "nextOffset", t.high_offset AS "highOffset",
  t.backfill_until AS "backfillUntil"`;

export async function renewPartitions(
  worker: Worker,
  leased: readonly LeasedPartition[],
  leaseMs: number,
): Promise<Renewed<LeasedPartition>> {
  return renew(worker, partitions, leased, { keyOf: ({ id }) => id, leaseMs });
}

export async function releasePartitions(worker: Worker, leased: readonly LeasedPartition[]): Promise<void> {
  for (const { id, lease } of leased)
    await release(worker.db, partitions, { keys: [id], epoch: lease.epoch });
  await notify(worker.db, partitionsChannel);
}

/** The position that the database has now; null if the lease is no longer ours. */
export async function reloadPartition(
  db: Queryable,
  { id, lease }: LeasedPartition,
): Promise<LeasedPartition | null> {
  const [row] = await db.query<PositionRow>(sql`
    SELECT ${positionColumns} FROM dlq.source_partitions t
    WHERE t.id = ${id} AND t.lease_epoch = ${lease.epoch} AND t.lease_owner = ${lease.owner}`);
  return row === undefined ? null : { ...row, lease };
}

/** Retention deleted records before they were read: counts them as lost and continues at the log start. */
export async function skipLostRecords(
  db: Queryable,
  leased: LeasedPartition,
  logStart: bigint,
): Promise<boolean> {
  // Offsets below the highest position were counted when they were read first.
  const rows = await db.query(sql`
    UPDATE dlq.source_partitions p
    SET lost = p.lost + GREATEST(0, ${logStart}::bigint - p.high_offset)
          + CASE WHEN p.next_offset < p.backfill_until
              THEN LEAST(${logStart}::bigint, p.backfill_until) - p.next_offset ELSE 0 END,
        backfill_until = CASE WHEN ${logStart}::bigint < p.backfill_until THEN p.backfill_until END,
        next_offset = ${logStart}::bigint,
        high_offset = GREATEST(p.high_offset, ${logStart}::bigint),
        log_start = ${logStart}::bigint
    WHERE ${isLeasedAt(leased, leased.nextOffset)} AND p.next_offset < ${logStart}::bigint
    RETURNING p.id`);
  return rows.length === 1;
}

export async function notePartitionError(
  db: Queryable,
  { id, lease }: LeasedPartition,
  { error, kind }: Readonly<{ error: string; kind?: 'stopped' | 'denied' | undefined }>,
): Promise<void> {
  await db.query(sql`
    UPDATE dlq.source_partitions
    SET last_error = ${error}, last_error_at = clock_timestamp(), denied = ${kind === 'denied'},
        stopped = stopped OR ${kind === 'stopped'}
    WHERE id = ${id} AND lease_epoch = ${lease.epoch}`);
}

export async function clearPartitionError(db: Queryable, { id, lease }: LeasedPartition): Promise<void> {
  await db.query(sql`
    UPDATE dlq.source_partitions SET ${noError}
    WHERE id = ${id} AND lease_epoch = ${lease.epoch} AND last_error IS NOT NULL`);
}
