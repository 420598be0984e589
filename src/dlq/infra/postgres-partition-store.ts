import type { Database } from '../../platform/postgres/database.ts';
import { countReplicas } from '../../platform/postgres/replicas.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import { notify } from '../../platform/postgres/wake.ts';
import {
  claim,
  leaseIsOver,
  renew,
  heldRows,
  settle,
  type Worker,
  type WorkTable,
} from '../../platform/postgres/work.ts';
import type { Lease } from '../../kernel/lease.ts';
import type { HeldPartition, PartitionStore, SourcePartition } from '../usecase/ports.ts';

/** Partitions are claimed, renewed and given back by the shared mechanism, like any other work. */
const partitions: WorkTable = {
  slice: 'dlq',
  table: sql`dlq.source_partitions`,
  key: sql`id`,
  keyArray: sql`bigint[]`,
};

/** Readers wait here for partitions that became free or were moved. */
export const partitionsChannel = 'dlq_partitions';

export function createPostgresPartitionStore(db: Database, worker: Worker): PartitionStore {
  return {
    list: () =>
      db.query<SourcePartition>(sql`
        SELECT p.cluster_id AS "clusterId", p.topic, p.topic_id AS "topicId", p.partition,
               p.first_offset AS "firstOffset", p.next_offset AS "nextOffset", p.high_offset AS "highOffset",
               p.backfill_until AS "backfillUntil", p.log_start AS "logStart", p.log_end AS "logEnd",
               p.stored, p.reopened, p.folded, p.not_records AS "notRecords", p.lost, p.reread,
               p.last_error AS "lastError", p.last_error_at AS "lastErrorAt", p.gone AS "isGone",
               p.stopped AS "isStopped", p.lease_owner AS "leaseOwner", p.stored_at AS "storedAt",
               p.last_seek AS "lastSeek",
               COALESCE(p.lease_until > clock_timestamp(), false) AS "leaseIsLive"
        FROM dlq.source_partitions p
        ORDER BY p.topic, p.partition, p.id`),

    known: (clusterId) =>
      db.query(sql`
        SELECT topic, topic_id AS "topicId", partition FROM dlq.source_partitions
        WHERE cluster_id = ${clusterId}`),

    async add(clusterId, found) {
      await db.query(sql`
        INSERT INTO dlq.source_partitions
          (cluster_id, topic, topic_id, partition, first_offset, next_offset, high_offset)
        SELECT ${clusterId}, topic, topic_id, partition, first_offset, first_offset, first_offset
        FROM unnest(
          ${found.map((one) => one.topic)}::text[], ${found.map((one) => one.topicId)}::uuid[],
          ${found.map((one) => one.partition)}::int[], ${found.map((one) => one.firstOffset)}::bigint[]
        ) AS found (topic, topic_id, partition, first_offset)
        ON CONFLICT DO NOTHING`);
    },

    async observe(clusterId, found, troubled) {
      await db.query(sql`
        WITH found AS (
          SELECT * FROM unnest(
            ${found.map((one) => one.topicId)}::uuid[], ${found.map((one) => one.partition)}::int[],
            ${found.map((one) => one.start)}::bigint[], ${found.map((one) => one.end)}::bigint[]
          ) AS found (topic_id, partition, log_start, log_end)
        ), locked AS MATERIALIZED (
          SELECT p.id FROM dlq.source_partitions p WHERE p.cluster_id = ${clusterId} ORDER BY p.id FOR UPDATE SKIP LOCKED
        )
        UPDATE dlq.source_partitions p
        SET gone = found.topic_id IS NULL,
            log_start = COALESCE(found.log_start, p.log_start), log_end = COALESCE(found.log_end, p.log_end)
        FROM locked
        JOIN dlq.source_partitions q ON q.id = locked.id
        LEFT JOIN found ON found.topic_id = q.topic_id AND found.partition = q.partition
        WHERE p.id = locked.id
          AND (found.topic_id IS NOT NULL OR NOT (p.topic = ANY(${[...troubled]}::text[])))
          AND (p.gone, p.log_start, p.log_end) IS DISTINCT FROM
              (found.topic_id IS NULL, COALESCE(found.log_start, p.log_start), COALESCE(found.log_end, p.log_end))`);
    },

    async forgetLocal(ourClusterId) {
      await db.query(sql`
        DELETE FROM dlq.source_partitions p
        WHERE p.cluster_id LIKE 'local-%' AND p.cluster_id <> ${ourClusterId} AND NOT EXISTS (
          SELECT 1 FROM platform.replicas r
          WHERE r.kafka_cluster_id = p.cluster_id AND r.seen_at > clock_timestamp() - interval '15 seconds')`);
    },

    async claim(clusterId, limit, leaseMs) {
      const claimed = await claim<HeldRow>(worker, partitions, {
        where: sql`t.cluster_id = ${clusterId} AND NOT t.gone AND NOT t.stopped AND ${leaseIsOver}`,
        orderBy: sql`t.id`,
        limit,
        leaseMs,
        set: sql`lease_lost = false`,
        returning: heldColumns(sql`t`),
      });
      return claimed.rows.map((row) => heldOf(row, claimed.lease));
    },

    async renew(held, leaseMs) {
      const renewed = await renew(worker, partitions, {
        keys: held.map((one) => one.id),
        epochs: held.map((one) => one.lease.epoch),
        leaseMs,
      });
      return { ids: new Set(renewed.keys), locked: new Set(renewed.locked), endsAtMs: renewed.endsAtMs };
    },

    async release(held) {
      for (const one of held)
        await settle(worker.db, partitions, {
          held: heldRows(partitions, [one.id], one.lease.epoch),
          count: 1,
          guard: sql`true`,
          set: sql`topic = t.topic`,
          returning: sql`t.id`,
        });
      await notify(db, partitionsChannel);
    },

    async reload(held) {
      const rows = await db.query<HeldRow>(sql`
        SELECT ${heldColumns(sql`p`)} FROM dlq.source_partitions p
        WHERE p.id = ${held.id} AND p.lease_epoch = ${held.lease.epoch} AND p.lease_owner = ${held.lease.owner}`);
      return rows[0] === undefined ? null : heldOf(rows[0], held.lease);
    },

    async noteError(held, error, stop) {
      await db.query(sql`
        UPDATE dlq.source_partitions
        SET last_error = ${error}, last_error_at = clock_timestamp(), stopped = stopped OR ${stop}
        WHERE id = ${held.id} AND lease_epoch = ${held.lease.epoch}`);
    },

    async clearError(held) {
      await db.query(sql`
        UPDATE dlq.source_partitions SET last_error = NULL, last_error_at = NULL
        WHERE id = ${held.id} AND lease_epoch = ${held.lease.epoch} AND last_error IS NOT NULL`);
    },

    async share(clusterId) {
      const replicas = await countReplicas(db, { role: 'ingest', clusterId });
      const rows = await db.query<{ count: bigint }>(sql`
        SELECT count(*) AS count FROM dlq.source_partitions
        WHERE cluster_id = ${clusterId} AND NOT gone AND NOT stopped`);
      return Math.ceil(Number(rows[0]?.count ?? 0n) / Math.max(1, replicas));
    },

    seek: ({ clusterId, topicId, partition }, { offset, actor, reason }) =>
      db.transaction(async (tx) => {
        // The new epoch ends the running lease, so a batch that is under way cannot move the position again.
        const rows = await tx.query(sql`
          UPDATE dlq.source_partitions
          SET next_offset = ${offset}::bigint,
              first_offset = LEAST(first_offset, ${offset}::bigint),
              backfill_until = CASE WHEN ${offset}::bigint < first_offset THEN first_offset END,
              last_seek = jsonb_build_object(
                'at', clock_timestamp(), 'actor', ${actor}::text, 'reason', ${reason}::text,
                'from', next_offset::text, 'to', ${String(offset)}::text),
              stopped = false, last_error = NULL, last_error_at = NULL,
              lease_owner = NULL, lease_until = NULL, lease_epoch = nextval('platform.lease_epochs')
          WHERE cluster_id = ${clusterId} AND topic_id = ${topicId} AND partition = ${partition}
            AND high_offset >= ${offset}::bigint AND backfill_until IS NULL
          RETURNING id`);
        await notify(tx, partitionsChannel);
        return rows.length === 1;
      }),
  };
}

type HeldRow = {
  id: bigint;
  topic: string;
  topic_id: string;
  partition: number;
  next_offset: bigint;
  high_offset: bigint;
  backfill_until: bigint | null;
};

function heldColumns(from: Sql): Sql {
  return sql`${from}.id, ${from}.topic, ${from}.topic_id, ${from}.partition, ${from}.next_offset,
             ${from}.high_offset, ${from}.backfill_until`;
}

function heldOf(row: HeldRow, lease: Lease): HeldPartition {
  return {
    id: row.id,
    topic: row.topic,
    topicId: row.topic_id,
    partition: row.partition,
    nextOffset: row.next_offset,
    highOffset: row.high_offset,
    backfillUntil: row.backfill_until,
    lease,
  };
}
