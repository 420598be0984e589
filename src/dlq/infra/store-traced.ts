import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { ArrivalPlan, ChangedMessage, KnownRow, NotedArrival } from '../domain/arrivals.ts';
import type { Status } from '../domain/message.ts';
import type { Batch, HeldPartition, PlanArrivals } from '../usecase/ports.ts';
import { arrivingRows, type ArrivingOptions } from './arriving-rows.ts';
import { moveBack, tellOfDead } from './messages-table.ts';
import { isHeldAt, moveTo, notRecords } from './partition-position.ts';

/**
 * Stores a batch that needs a look at what is there already: messages of ours that have come back, and records
 * that were read before. Inside the caller's transaction; everything it decides on is locked first. Answers the ids
 * of the new messages, or null when the partition is no longer ours.
 */
export async function storeTraced(
  tx: Queryable,
  {
    held,
    batch,
    plan,
    options,
  }: Readonly<{
    held: HeldPartition;
    batch: Batch;
    plan: PlanArrivals;
    options: ArrivingOptions;
  }>,
): Promise<readonly string[] | null> {
  if (!(await lockPartition(tx, held, batch.from))) return null;
  const known = await lockKnown(
    tx,
    batch.letters.flatMap((letter) => letter.lineage?.messageId ?? []),
  );
  const isReread = batch.from < held.highOffset;
  const taken = isReread ? await selectTaken(tx, held, batch) : new Set<bigint>();
  const planned = plan(batch.letters, known, taken);
  const stored = await insertMessages(tx, held, planned, options);
  await writeChanges(tx, planned);
  await insertArrivals(tx, held, planned.arrivals);
  await movePosition(tx, held, { batch, planned, stored: stored.length });
  return stored;
}

async function lockPartition(tx: Queryable, held: HeldPartition, from: bigint): Promise<boolean> {
  const rows = await tx.query(sql`
    SELECT p.id FROM dlq.source_partitions p WHERE ${isHeldAt(held, from)} FOR UPDATE`);
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
};

/**
 * Locks the messages of these ids, live or archived. A message that moves from one table to the other between
 * the two looks would be seen in neither, so whoever is missing is looked for again.
 */
async function lockKnown(tx: Queryable, ids: readonly string[]): Promise<ReadonlyMap<string, KnownRow>> {
  const known = new Map<string, KnownRow>();
  for (let look = 0; look < 3; look += 1) {
    const missing = ids.filter((id) => !known.has(id));
    if (missing.length === 0) break;
    for (const row of await lockOnce(tx, missing)) known.set(row.id, knownOf(row));
  }
  return known;
}

/** In the order of their ids, so that two partitions with the same messages wait instead of deadlocking. */
async function lockOnce(tx: Queryable, ids: readonly string[]): Promise<readonly KnownDbRow[]> {
  const columns = sql`
    t.id, t.status, t.retry_count, t.max_retries, t.attempt_no, t.lease_epoch, t.published_sha256, t.original_topic,
    COALESCE(t.lease_until > clock_timestamp(), false) AS lease_is_live`;
  const live = await tx.query<KnownDbRow>(sql`
    SELECT ${columns}, false AS is_archived FROM dlq.dlq_messages t
    WHERE t.id = ANY(${ids}::uuid[]) ORDER BY t.id FOR UPDATE`);
  const archived = await tx.query<KnownDbRow>(sql`
    SELECT ${columns}, true AS is_archived FROM dlq.dlq_messages_archive t
    WHERE t.id = ANY(${ids}::uuid[]) ORDER BY t.id FOR UPDATE`);
  return [...live, ...archived];
}

function knownOf(row: KnownDbRow): KnownRow {
  return {
    id: row.id,
    epoch: row.lease_epoch,
    isArchived: row.is_archived,
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

/** Which of these records were taken before, as rows, as archived rows or as arrivals. */
async function selectTaken(tx: Queryable, held: HeldPartition, batch: Batch): Promise<ReadonlySet<bigint>> {
  const offsets = batch.letters.map((letter) => letter.record.offset);
  const rows = await tx.query<{ offset: bigint }>(sql`
    SELECT source_offset AS "offset" FROM dlq.dlq_messages
    WHERE source_topic_id = ${held.topicId} AND source_partition = ${held.partition}
      AND source_offset = ANY(${offsets}::bigint[])
    UNION
    SELECT source_offset FROM dlq.dlq_messages_archive
    WHERE source_topic_id = ${held.topicId} AND source_partition = ${held.partition}
      AND source_offset = ANY(${offsets}::bigint[])
    UNION
    SELECT "offset" FROM dlq.arrivals
    WHERE topic_id = ${held.topicId} AND partition = ${held.partition} AND "offset" = ANY(${offsets}::bigint[])`);
  return new Set(rows.map((row) => row.offset));
}

async function insertMessages(
  tx: Queryable,
  held: HeldPartition,
  planned: ArrivalPlan,
  options: ArrivingOptions,
): Promise<readonly string[]> {
  if (planned.inserts.length === 0) return [];
  const { columns, select } = arrivingRows(held, planned.inserts, options);
  const rows = await tx.query<{ id: string }>(sql`
    WITH stored AS (
      INSERT INTO dlq.dlq_messages (${columns}) ${select}
      ON CONFLICT (source_topic_id, source_partition, source_offset) DO NOTHING
      RETURNING id, original_topic, status, error_message AS detail
    )${tellOfDead(sql`stored`)}
    SELECT id FROM stored`);
  return rows.map(({ id }) => id);
}

async function writeChanges(tx: Queryable, planned: ArrivalPlan): Promise<void> {
  const archived = planned.changes.filter(({ row }) => row.isArchived).map(({ row }) => row.id);
  if (archived.length > 0) await moveBack(tx, archived);
  for (const change of planned.changes) await updateMessage(tx, change);
}

/** The dialect stays that of the stored headers. A status that changes takes the message from whoever is retrying it; the new epoch makes that stick. */
async function updateMessage(tx: Queryable, { row, next, letter }: ChangedMessage): Promise<void> {
  const isChanged = next.status !== row.state.status;
  await tx.query(sql`
    UPDATE dlq.dlq_messages t
    SET status = ${next.status}, resolution = CASE WHEN ${isChanged} THEN NULL ELSE t.resolution END,
        error_message = ${letter.errorMessage}, error_class = ${letter.errorClass},
        error_stack = ${letter.errorStack}, consumer_group = ${letter.consumerGroup},
        fingerprint = ${letter.fingerprint},
        lease_owner = CASE WHEN ${isChanged} THEN NULL ELSE t.lease_owner END,
        lease_until = CASE WHEN ${isChanged} THEN NULL ELSE t.lease_until END,
        lease_lost = t.lease_lost AND NOT ${isChanged},
        lease_epoch = CASE WHEN ${isChanged} THEN nextval('platform.lease_epochs') ELSE t.lease_epoch END
    WHERE t.id = ${row.id}`);
  if (isChanged && next.status === 'DEAD')
    await tx.query(sql`
      INSERT INTO platform.notify_events (slice, kind, subject, item_id, summary)
      VALUES ('dlq', 'dead', ${row.originalTopic}, ${row.id}, left(${letter.errorMessage}, 500))`);
}

const eventOf = { reopened: 'came_back', repeated: 'repeated', late_failure: 'late_failure' } as const;

/** The epoch in the history is the one whose attempt came back: a late settle of it looks for this row. */
async function insertArrivals(
  tx: Queryable,
  held: HeldPartition,
  arrivals: readonly NotedArrival[],
): Promise<void> {
  for (const { letter, row, kind, from, to } of arrivals) {
    await tx.query(sql`
      INSERT INTO dlq.arrivals (topic_id, partition, "offset", message_id, kind)
      VALUES (${held.topicId}, ${held.partition}, ${letter.record.offset}, ${row.id}, ${kind})
      ON CONFLICT DO NOTHING`);
    await tx.query(sql`
      INSERT INTO dlq.message_history
        (message_id, event, actor, status_from, status_to, retry_count, attempt_no, lease_epoch,
         topic, partition, "offset", detail)
      VALUES (${row.id}, ${eventOf[kind]}, 'ingest', ${from.status}, ${to.status}, ${to.retryCount}, ${to.attemptNo},
              ${row.epoch}, ${held.topic}, ${held.partition}, ${letter.record.offset}, ${letter.errorMessage})`);
  }
}

/**
 * A batch lies wholly above the greatest position ever reached, wholly before the first one (it is being
 * filled in), or wholly between: then it was counted before, and only `reread` grows.
 */
async function movePosition(
  tx: Queryable,
  held: HeldPartition,
  { batch, planned, stored }: Readonly<{ batch: Batch; planned: ArrivalPlan; stored: number }>,
): Promise<void> {
  const isBackfill = held.backfillUntil !== null && batch.from < held.backfillUntil;
  const isCounted = batch.from >= held.highOffset || isBackfill;
  const conflicts = planned.inserts.length - stored;
  await tx.query(
    isCounted
      ? sql`
    UPDATE dlq.source_partitions p
    SET stored = p.stored + ${stored}, reopened = p.reopened + ${planned.reopened},
        folded = p.folded + ${planned.folded + conflicts + planned.reread},
        not_records = p.not_records + ${notRecords(batch)}::bigint, ${moveTo(batch)}
    WHERE p.id = ${held.id}`
      : sql`
    UPDATE dlq.source_partitions p
    SET reread = p.reread + ${batch.letters.length}, ${moveTo(batch)}
    WHERE p.id = ${held.id}`,
  );
}
