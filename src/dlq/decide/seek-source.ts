import type { Act } from '../../kernel/audit/act.ts';
import { AppError, messageOf } from '../../kernel/errors.ts';
import { recordAct } from '../../platform/audit/record-act.ts';
import type { Broker } from '../../platform/broker/port.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { notify } from '../../platform/work/wake.ts';
import { findSource, noError, partitionsChannel, sourceNotFound, type SourcePartition } from '../sources.ts';

export type SeekDeps = Readonly<{ db: Database; broker: Broker | null }>;

export type SeekTarget =
  | Readonly<{ to: 'offset'; offset: bigint }>
  | Readonly<{ to: 'timestamp'; timestampMs: bigint }>
  | Readonly<{ to: 'earliest' }>;

export type SeekRequest = Readonly<{
  topic: string;
  partition: number;
  target: SeekTarget;
  actor: string;
  reason: string;
  act: Act;
}>;

/**
 * Moves a partition's position back, so that it is read again. Records that were stored before are recognised and not
 * stored twice. A seek never goes beyond what was read, because that would skip records silently.
 */
export async function seekSource(
  deps: SeekDeps,
  request: SeekRequest,
): Promise<Readonly<{ from: bigint; to: bigint }>> {
  const partition = await findSource(deps.db, request);
  if (partition.isGone)
    throw new AppError(
      'SYS_DLQ_CONFLICT',
      'conflict',
      `the topic was deleted: ${request.topic}/${request.partition}`,
    );
  if (partition.backfillUntil !== null && partition.nextOffset < partition.backfillUntil)
    throw new AppError(
      'SYS_DLQ_CONFLICT',
      'conflict',
      `an earlier seek is in progress: the partition is at offset ${partition.nextOffset} ` +
        `and reads again up to ${partition.backfillUntil}`,
    );
  const wanted = await resolveTarget(deps.broker, partition, request.target);
  const start = partition.logStart ?? 0n;
  const offset = wanted < start ? start : wanted;
  if (offset > partition.highOffset)
    throw new AppError(
      'SYS_DLQ_SEEK_BEYOND_POSITION',
      'semantic',
      `offset ${offset} has not been read yet: the partition was read up to ${partition.highOffset}`,
    );
  if (!(await setPosition(deps.db, partition, { ...request, offset }))) throw sourceNotFound(request);
  return { from: partition.nextOffset, to: offset };
}

/** The new epoch ends the current lease, so a batch in progress cannot move the position again. */
async function setPosition(
  db: Database,
  { clusterId, topicId, partition, nextOffset }: SourcePartition,
  { topic, offset, actor, reason, act }: SeekRequest & Readonly<{ offset: bigint }>,
): Promise<boolean> {
  return db.transaction(async (tx) => {
    const rows = await tx.query(sql`
      UPDATE dlq.source_partitions
      SET next_offset = ${offset}::bigint,
          first_offset = LEAST(first_offset, ${offset}::bigint),
          backfill_until = CASE WHEN ${offset}::bigint < first_offset THEN first_offset END,
          last_seek = jsonb_build_object(
            'at', clock_timestamp(), 'actor', ${actor}::text, 'reason', ${reason}::text,
            'from', next_offset::text, 'to', ${String(offset)}::text),
          stopped = false, ${noError},
          lease_owner = NULL, lease_until = NULL, lease_epoch = nextval('platform.lease_epochs')
      WHERE cluster_id = ${clusterId} AND topic_id = ${topicId} AND partition = ${partition}
        AND high_offset >= ${offset}::bigint AND backfill_until IS NULL
      RETURNING id`);
    if (rows.length === 1)
      await recordAct(tx, act, {
        resource: `dlq/sources/${topic}/${partition}`,
        names: { topics: [topic] },
        detail: { change: 'seek', from: String(nextOffset), to: String(offset) },
      });
    await notify(tx, partitionsChannel);
    return rows.length === 1;
  });
}

async function resolveTarget(
  broker: Broker | null,
  partition: SourcePartition,
  target: SeekTarget,
): Promise<bigint> {
  switch (target.to) {
    case 'offset':
      return target.offset;
    case 'earliest':
      return partition.logStart ?? 0n;
    case 'timestamp': {
      const found = await offsetAt(broker, partition, target.timestampMs);
      return found > partition.highOffset ? partition.highOffset : found;
    }
  }
}

async function offsetAt(
  broker: Broker | null,
  partition: SourcePartition,
  timestampMs: bigint,
): Promise<bigint> {
  try {
    if (broker === null) throw new Error('no broker is configured');
    return await broker.offsetAt(partition, timestampMs, AbortSignal.timeout(5000));
  } catch (error) {
    const message = `failed to look up the offset for the timestamp: ${messageOf(error)}`;
    throw new AppError('SYS_DLQ_BROKER_UNAVAILABLE', 'unavailable', message, {
      cause: error,
      retryAfterMs: 5000,
    });
  }
}
