import { AppError, messageOf } from '../../kernel/errors.ts';
import type { PartitionStore, Source, SourcePartition } from './ports.ts';

export type SeekDeps = Readonly<{ partitions: PartitionStore; source: Source | null }>;

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
}>;

/**
 * Sets a partition's position back, so that it is read again. Records that were taken before are recognised
 * and not stored twice. It never goes beyond what has been read: that would skip records silently.
 */
export async function seekSource(
  deps: SeekDeps,
  request: SeekRequest,
): Promise<Readonly<{ from: bigint; to: bigint; partition: SourcePartition }>> {
  const partition = await findSource(deps.partitions, request);
  if (partition.isGone)
    throw new AppError(
      'SYS_DLQ_CONFLICT',
      'conflict',
      `the topic is gone, there is nothing to read again: ${request.topic}/${request.partition}`,
    );
  if (partition.backfillUntil !== null && partition.nextOffset < partition.backfillUntil)
    throw new AppError(
      'SYS_DLQ_CONFLICT',
      'conflict',
      `the partition is still being read up to offset ${partition.backfillUntil} after an earlier seek; ` +
        `it stands at ${partition.nextOffset}`,
    );
  const wanted = await resolveTarget(deps.source, partition, request.target);
  const start = partition.logStart ?? 0n;
  const offset = wanted < start ? start : wanted;
  if (offset > partition.highOffset)
    throw new AppError(
      'SYS_DLQ_SEEK_BEYOND_POSITION',
      'semantic',
      `offset ${offset} has not been read yet: the partition was read up to ${partition.highOffset}`,
    );
  const { actor, reason } = request;
  if (!(await deps.partitions.seek(partition, { offset, actor, reason }))) throw sourceNotFound(request);
  return { from: partition.nextOffset, to: offset, partition };
}

/** By name: of a topic that was made again, the one that is there now. */
async function findSource(
  partitions: PartitionStore,
  { topic, partition }: SeekRequest,
): Promise<SourcePartition> {
  const named = (await partitions.list()).filter((one) => one.topic === topic && one.partition === partition);
  const found = named.findLast((one) => !one.isGone) ?? named.at(-1);
  if (found === undefined) throw sourceNotFound({ topic, partition });
  return found;
}

async function resolveTarget(
  source: Source | null,
  partition: SourcePartition,
  target: SeekTarget,
): Promise<bigint> {
  switch (target.to) {
    case 'offset':
      return target.offset;
    case 'earliest':
      return partition.logStart ?? 0n;
    case 'timestamp': {
      const found = await offsetAt(source, partition, target.timestampMs);
      return found > partition.highOffset ? partition.highOffset : found;
    }
  }
}

async function offsetAt(
  source: Source | null,
  partition: SourcePartition,
  timestampMs: bigint,
): Promise<bigint> {
  try {
    if (source === null) throw new Error('no broker is configured');
    return await source.offsetAt(partition, timestampMs, AbortSignal.timeout(5000));
  } catch (error) {
    const message = `the broker could not be asked for the offset at that time: ${messageOf(error)}`;
    throw new AppError('SYS_DLQ_BROKER_UNAVAILABLE', 'unavailable', message, {
      cause: error,
      retryAfterMs: 5000,
    });
  }
}

function sourceNotFound({ topic, partition }: Readonly<{ topic: string; partition: number }>): AppError {
  return new AppError('SYS_DLQ_NOT_FOUND', 'not_found', `dlq source not found: ${topic}/${partition}`);
}
