import type { Compression, PublishResult } from '../port.ts';
import type { TopicView } from './cluster.ts';
import type { Deadline } from './deadline.ts';
import type { PartitionSender } from './partition-sender.ts';
import { orderKey, takeChunk, type ChunkLimits, type Placed } from './record-chunks.ts';
import { notSent, type SendOutcome } from './send-chunk.ts';
import type { Semaphore } from './semaphore.ts';

/** The records of one call that go to one partition, in order. */
export type Share = Readonly<{ topic: TopicView; partition: number; records: Placed[] }>;

export type Route = Readonly<{
  sender: PartitionSender;
  /** Limits concurrent sends to the partition's node. */
  semaphore: Semaphore;
}>;

const chunkLimits: ChunkLimits = { records: 500, bytes: 900_000 };
const tooLarge: ReadonlySet<string> = new Set(['MESSAGE_TOO_LARGE', 'RECORD_LIST_TOO_LARGE']);
/** The broker refused the whole batch because of one record; it accepts the rest without it. */
const divisible: ReadonlySet<string> = new Set([...tooLarge, 'INVALID_RECORD']);

/**
 * Writes one result per record. Records with the same key keep their order: a refused record blocks the later ones of
 * its key, and all others are sent. An outage, or a missing response, blocks the rest of the partition. A topic that
 * is not writable fails the whole share.
 */
export async function sendShare(
  way: Route,
  share: Share,
  results: PublishResult[],
  deadline: Deadline,
): Promise<void> {
  let waiting: readonly Placed[] = share.records;
  try {
    await way.sender.exclusive.use(deadline, async () => {
      let limits = chunkLimits;
      while (waiting.length > 0) {
        const { chunk, compression, rest } = takeChunk(waiting, limits);
        const outcome = await sendOnce(way, { share, chunk, compression }, deadline);
        if (outcome.outcome === 'failed' && chunk.length > 1 && divisible.has(outcome.code)) {
          limits = { ...limits, records: Math.ceil(chunk.length / 2) };
          continue;
        }
        for (const [at, { index }] of chunk.entries())
          results[index] = toResult(outcome, { partition: share.partition, at });
        if (outcome.outcome === 'acked') waiting = rest;
        else {
          // Without the bad record the next ones are sent in full batches again.
          limits = chunkLimits;
          waiting = goOnAfter(outcome, { chunk, rest, results });
        }
      }
    });
  } catch (error) {
    const failure = notSent(error, deadline.signal);
    for (const { index } of waiting) results[index] ??= failure;
  }
}

/** A record with an unknown codec that alone is too large is sent again with gzip. */
async function sendOnce(
  { sender, semaphore }: Route,
  {
    share,
    chunk,
    compression,
  }: Readonly<{ share: Share; chunk: readonly Placed[]; compression: Compression }>,
  deadline: Deadline,
): Promise<SendOutcome> {
  const send = (codec: Compression): Promise<SendOutcome> => {
    const { topic, partition } = share;
    const records = chunk.map(({ record }) => record);
    return semaphore.use(deadline, () =>
      sender.send(
        { topic: topic.topic, topicId: topic.topicId, partition, records, compression: codec },
        deadline,
      ),
    );
  };
  const outcome = await send(compression);
  const [first, second] = chunk;
  const mayCompress = second === undefined && first?.record.compression === 'unknown';
  const isTooLarge = outcome.outcome === 'failed' && tooLarge.has(outcome.code);
  return mayCompress && isTooLarge ? send('gzip') : outcome;
}

/** The records to send after a chunk that was not acked; all others of the share get their results. */
function goOnAfter(
  outcome: Exclude<SendOutcome, { outcome: 'acked' }>,
  {
    chunk,
    rest,
    results,
  }: Readonly<{ chunk: readonly Placed[]; rest: readonly Placed[]; results: PublishResult[] }>,
): readonly Placed[] {
  const behind = chunk[0]?.index ?? 0;
  if (outcome.outcome === 'unknown' || outcome.fault === 'cluster') {
    for (const { index } of rest) results[index] = { result: 'skipped', behind };
    return [];
  }
  if (outcome.fault === 'topic') {
    for (const { index } of rest) results[index] = toResult(outcome, { partition: 0, at: 0 });
    return [];
  }
  const refused = new Map<string, number>();
  for (const { record, index } of chunk) {
    const key = orderKey(record);
    if (key !== null) refused.set(key, refused.get(key) ?? index);
  }
  return rest.filter(({ record, index }) => {
    const key = orderKey(record);
    const at = key === null ? undefined : refused.get(key);
    if (at !== undefined) results[index] = { result: 'skipped', behind: at };
    return at === undefined;
  });
}

function toResult(outcome: SendOutcome, of: Readonly<{ partition: number; at: number }>): PublishResult {
  if (outcome.outcome === 'acked')
    return { result: 'acked', partition: of.partition, offset: outcome.baseOffset + BigInt(of.at) };
  const { code, message } = outcome;
  if (outcome.outcome === 'unknown') return { result: 'unknown', code, message };
  return { result: 'failed', fault: outcome.fault, retriable: outcome.retriable, code, message };
}
