import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { addNotifyEvent } from '../../platform/work/notify-events.ts';
import {
  planArrivals,
  type ArrivalPlan,
  type ChangedMessage,
  type KnownRow,
  type NotedArrival,
} from '../domain/arrivals.ts';
import type { LookupHashes } from '../domain/payloads.ts';
import { namedAttempt, type SentAttempt } from '../domain/lineage.ts';
import type { Status } from '../domain/message.ts';
import { markReturned } from './mark-returned.ts';
import { messageRows, type RowOptions } from './message-rows.ts';
import { restoreFromArchive, notifyDead } from '../messages-table.ts';
import { countSkipped, isLeasedAt, moveTo } from './partition-position.ts';
import type { LeasedPartition } from './partitions-table.ts';
import type { Batch } from './split-fetched.ts';

export type MergeOptions = RowOptions &
  Readonly<{
    /** How encrypted messages are recognised. */
    hashes: () => Promise<LookupHashes | null>;
  }>;

/**
 * Stores a batch with records that may be known already: republished messages that came back, and records that were
 * read before. Locks everything it decides on. Returns the ids of the new messages, or null if the lease was lost.
 */
export async function mergeBatch(
  tx: Queryable,
  options: MergeOptions,
  leased: LeasedPartition,
  batch: Batch,
): Promise<readonly string[] | null> {
  if (!(await lockPartition(tx, leased, batch.from))) return null;
  const known = await lockKnownMessages(
    tx,
    batch.letters.flatMap(({ lineage }) => lineage ?? []),
  );
  const isReread = batch.from < leased.highOffset;
  const stored = isReread ? await selectStoredOffsets(tx, leased, batch) : new Set<bigint>();
  const hashes = known.size === 0 ? null : await options.hashes();
  const plan = planArrivals(batch.letters, known, stored, { maxRetries: options.maxRetries, hashes });
  const ids = await insertMessages(tx, leased, plan, options);
  await writeChanges(tx, plan, options);
  await insertArrivals(tx, leased, plan.arrivals);
  await markReturned(tx, plan.returned);
  await movePosition(tx, leased, { batch, plan, inserted: ids.length });
  return ids;
}

async function lockPartition(tx: Queryable, leased: LeasedPartition, from: bigint): Promise<boolean> {
  const rows = await tx.query(sql`
    SELECT p.id FROM dlq.source_partitions p WHERE ${isLeasedAt(leased, from)} FOR UPDATE`);
  return rows.length === 1;
}

type KnownDbRow = {
  id: string;
  status: Status;
  retry_count: number;
  max_retries: number;
  attempt_no: number;
  lease_is_live: boolean;
  lease_epoch: bigint;
  published_sha256: Buffer | null;
  original_topic: string;
  is_archived: boolean;
  is_sealed: boolean;
};

/**
 * Locks the messages that the records name, live or archived. A message that is archived or restored between the two
 * lookups would be missed by both, so missing ones are looked up again.
 */
async function lockKnownMessages(
  tx: Queryable,
  lineages: readonly Readonly<{ messageId: string; attempt: number | null }>[],
): Promise<ReadonlyMap<string, KnownRow>> {
  const ids = [...new Set(lineages.map(({ messageId }) => messageId))];
  const rows = new Map<string, KnownDbRow>();
  for (let lookup = 0; lookup < 3; lookup += 1) {
    const missing = ids.filter((id) => !rows.has(id));
    if (missing.length === 0) break;
    for (const row of await lockOnce(tx, missing)) rows.set(row.id, row);
  }
  const named = lineages.flatMap(({ messageId, attempt }) => {
    const row = rows.get(messageId);
    return row === undefined
      ? []
      : [{ messageId, attempt: namedAttempt({ attemptNo: row.attempt_no }, attempt) }];
  });
  const attempts = await selectAttempts(tx, named);
  return new Map([...rows].map(([id, row]) => [id, knownOf(row, attempts.get(id) ?? new Map())]));
}

type Attempts = ReadonlyMap<number, SentAttempt>;

/** The hashes, topics and versions that these attempts were going to publish. */
async function selectAttempts(
  tx: Queryable,
  named: readonly Readonly<{ messageId: string; attempt: number }>[],
): Promise<ReadonlyMap<string, Attempts>> {
  if (named.length === 0) return new Map();
  const rows = await tx.query<SentAttempt & { id: string; attempt_no: number }>(sql`
    SELECT h.message_id AS id, h.attempt_no, h.published_sha256 AS sha256, h.target_topic AS topic,
           COALESCE(h.version, 0) AS version
    FROM unnest(${named.map(({ messageId }) => messageId)}::uuid[], ${named.map(({ attempt }) => attempt)}::int[])
         AS named (id, attempt_no)
    JOIN dlq.message_history h ON h.message_id = named.id AND h.attempt_no = named.attempt_no
    WHERE h.event = 'retry_started' AND h.published_sha256 IS NOT NULL`);
  const byMessage = Map.groupBy(rows, ({ id }) => id);
  return new Map(
    [...byMessage].map(([id, some]) => [
      id,
      new Map(some.map(({ attempt_no, ...one }) => [attempt_no, one])),
    ]),
  );
}

/** Ordered by id, so that two partitions with the same messages do not deadlock. */
async function lockOnce(tx: Queryable, ids: readonly string[]): Promise<readonly KnownDbRow[]> {
  const columns = sql`
    t.id, t.status, t.retry_count, t.max_retries, t.attempt_no, t.lease_epoch, t.published_sha256, t.original_topic, t.data_key IS NOT NULL AS is_sealed,
    COALESCE(t.lease_until > clock_timestamp(), false) AS lease_is_live`;
  const live = await tx.query<KnownDbRow>(sql`
    SELECT ${columns}, false AS is_archived FROM dlq.dlq_messages t
    WHERE t.id = ANY(${ids}::uuid[]) ORDER BY t.id FOR UPDATE`);
  const archived = await tx.query<KnownDbRow>(sql`
    SELECT ${columns}, true AS is_archived FROM dlq.dlq_messages_archive t
    WHERE t.id = ANY(${ids}::uuid[]) ORDER BY t.id FOR UPDATE`);
  return [...live, ...archived];
}

function knownOf(row: KnownDbRow, attempts: Attempts): KnownRow {
  return {
    id: row.id,
    epoch: row.lease_epoch,
    isArchived: row.is_archived,
    isSealed: row.is_sealed,
    attempts,
    publishedSha256: row.published_sha256,
    originalTopic: row.original_topic,
    state: {
      status: row.status,
      retryCount: row.retry_count,
      maxRetries: row.max_retries,
      attemptNo: row.attempt_no,
      leaseIsLive: row.lease_is_live,
    },
  };
}

/** Which of these records were stored before, as messages, archived messages or arrivals. */
async function selectStoredOffsets(
  tx: Queryable,
  leased: LeasedPartition,
  batch: Batch,
): Promise<ReadonlySet<bigint>> {
  const offsets = batch.letters.map((letter) => letter.record.offset);
  const rows = await tx.query<{ offset: bigint }>(sql`
    SELECT source_offset AS "offset" FROM dlq.dlq_messages
    WHERE source_topic_id = ${leased.topicId} AND source_partition = ${leased.partition}
      AND source_offset = ANY(${offsets}::bigint[])
    UNION
    SELECT source_offset FROM dlq.dlq_messages_archive
    WHERE source_topic_id = ${leased.topicId} AND source_partition = ${leased.partition}
      AND source_offset = ANY(${offsets}::bigint[])
    UNION
    SELECT "offset" FROM dlq.arrivals
    WHERE topic_id = ${leased.topicId} AND partition = ${leased.partition} AND "offset" = ANY(${offsets}::bigint[])`);
  return new Set(rows.map((row) => row.offset));
}

async function insertMessages(
  tx: Queryable,
  leased: LeasedPartition,
  plan: ArrivalPlan,
  options: RowOptions,
): Promise<readonly string[]> {
  if (plan.inserts.length === 0) return [];
  const { columns, select, staging } = messageRows(leased, plan.inserts, options);
  await staging?.put(tx);
  const rows = await tx.query<{ id: string }>(sql`
    WITH stored AS (
      INSERT INTO dlq.dlq_messages (${columns}) ${select}
      ON CONFLICT (source_topic_id, source_partition, source_offset) DO NOTHING
      RETURNING id, original_topic, status, error_message AS detail
    )${notifyDead(sql`stored`)}
    SELECT id FROM stored`);
  await staging?.remove(tx);
  return rows.map(({ id }) => id);
}

async function writeChanges(tx: Queryable, plan: ArrivalPlan, options: RowOptions): Promise<void> {
  const archived = plan.changes.filter(({ row }) => row.isArchived).map(({ row }) => row.id);
  if (archived.length > 0) await restoreFromArchive(tx, archived);
  for (const change of plan.changes) await updateMessage(tx, change, stackOf(change, options));
  if (plan.changes.length > 0)
    await countFailures(
      tx,
      plan.changes.map(({ row }) => row.id),
    );
}

/** A message that came back is one more failure of its group, although it is no more messages. */
async function countFailures(tx: Queryable, ids: readonly string[]): Promise<void> {
  await tx.query(sql`
    INSERT INTO dlq.group_changes
      (fingerprint, original_topic, consumer_group, status, messages, arrived, last_at)
    SELECT t.fingerprint, left(t.original_topic, 249), left(COALESCE(t.consumer_group, ''), 255), t.status, 0,
           count(*), clock_timestamp()
    FROM dlq.dlq_messages t WHERE t.id = ANY(${ids}::uuid[]) AND t.fingerprint IS NOT NULL
    GROUP BY 1, 2, 3, 4`);
}

/** A message stays as it was stored: encrypted or in the clear. Without a key its new stack is left out. */
function stackOf({ row, letter }: ChangedMessage, { sealerFor }: RowOptions): string | null {
  if (!row.isSealed) return letter.errorStack;
  return sealerFor?.(letter)?.seal(row.id, { stack: letter.errorStack }).stack ?? null;
}

/** Keeps the dialect of the stored headers. A status change takes a new epoch, so that a running retry cannot settle. */
async function updateMessage(
  tx: Queryable,
  { row, next, letter }: ChangedMessage,
  errorStack: string | null,
): Promise<void> {
  const isChanged = next.status !== row.state.status;
  await tx.query(sql`
    UPDATE dlq.dlq_messages t
    SET status = ${next.status}, resolution = CASE WHEN ${isChanged} THEN NULL ELSE t.resolution END,
        error_message = ${letter.errorMessage}, error_class = ${letter.errorClass},
        error_stack = ${errorStack}, consumer_group = ${letter.consumerGroup},
        fingerprint = ${letter.fingerprint},
        lease_owner = CASE WHEN ${isChanged} THEN NULL ELSE t.lease_owner END,
        lease_until = CASE WHEN ${isChanged} THEN NULL ELSE t.lease_until END,
        lease_lost = t.lease_lost AND NOT ${isChanged},
        lease_epoch = CASE WHEN ${isChanged} THEN nextval('platform.lease_epochs') ELSE t.lease_epoch END
    WHERE t.id = ${row.id}`);
  if (isChanged && next.status === 'DEAD')
    await addNotifyEvent(tx, {
      slice: 'dlq',
      kind: 'dead',
      subject: row.originalTopic,
      itemId: row.id,
      summary: letter.errorMessage,
    });
}

const eventOf = { reopened: 'came_back', repeated: 'repeated', late_failure: 'late_failure' } as const;

/** The history has the epoch of the attempt that came back: a late settle of that attempt looks for this entry. */
async function insertArrivals(
  tx: Queryable,
  leased: LeasedPartition,
  arrivals: readonly NotedArrival[],
): Promise<void> {
  for (const { letter, row, kind, from, to } of arrivals) {
    await tx.query(sql`
      INSERT INTO dlq.arrivals (topic_id, partition, "offset", message_id, kind)
      VALUES (${leased.topicId}, ${leased.partition}, ${letter.record.offset}, ${row.id}, ${kind})
      ON CONFLICT DO NOTHING`);
    await tx.query(sql`
      INSERT INTO dlq.message_history
        (message_id, event, actor, status_from, status_to, retry_count, attempt_no, lease_epoch,
         topic, partition, "offset", detail, original_topic)
      SELECT ${row.id}::uuid, ${eventOf[kind]}, 'ingest', ${from.status}, ${to.status}, ${to.retryCount}, ${to.attemptNo},
              ${row.epoch}, ${leased.topic}, ${leased.partition}, ${letter.record.offset}, ${letter.errorMessage},
             t.original_topic
      FROM dlq.dlq_messages t WHERE t.id = ${row.id}`);
  }
}

/**
 * A batch lies above the highest position ever reached, or before the first one (a backfill), or between the two: then
 * it was counted before, and only `reread` grows.
 */
async function movePosition(
  tx: Queryable,
  leased: LeasedPartition,
  { batch, plan, inserted }: Readonly<{ batch: Batch; plan: ArrivalPlan; inserted: number }>,
): Promise<void> {
  const isBackfill = leased.backfillUntil !== null && batch.from < leased.backfillUntil;
  const isCounted = batch.from >= leased.highOffset || isBackfill;
  const conflicts = plan.inserts.length - inserted;
  await tx.query(
    isCounted
      ? sql`
    UPDATE dlq.source_partitions p
    SET stored = p.stored + ${inserted}, reopened = p.reopened + ${plan.reopened},
        folded = p.folded + ${plan.folded + conflicts + plan.reread},
        ${countSkipped(batch)}, ${moveTo(batch)}
    WHERE p.id = ${leased.id}`
      : sql`
    UPDATE dlq.source_partitions p
    SET reread = p.reread + ${batch.letters.length}, ${moveTo(batch)}
    WHERE p.id = ${leased.id}`,
  );
}
