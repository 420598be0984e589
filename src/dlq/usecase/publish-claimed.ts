import { randomUUID } from 'node:crypto';
import type { Clock } from '../../kernel/clock.ts';
import { messageOf } from '../../kernel/errors.ts';
import { hasTimeFor, type Lease } from '../../kernel/lease.ts';
import { recordSha256, type Header } from '../domain/record.ts';
import { redriveHeaders } from '../domain/redrive-headers.ts';
import type {
  AttemptOutcome,
  ClaimedBatch,
  ClaimedMessage,
  MessageBody,
  Publisher,
  PublishResult,
  RetryStore,
} from './ports.ts';

export type PublishDeps = Readonly<{
  store: RetryStore;
  /** Null without a broker: then a retry resolves and says that nothing was sent. */
  publish: Publisher | null;
  clock: Clock;
  publishTimeoutMs: number;
  republishKey: 'original' | 'uuid';
  /** Takes the failure headers of every dialect, and our own, from the record. */
  stripFailureHeaders: (headers: readonly Header[], dialect: string | null) => readonly Header[];
  isDeadLetterTopic: (topic: string) => boolean;
}>;

/** What happened to a claimed message: the broker's own words where it was asked. */
export type Published = Readonly<{
  outcome: AttemptOutcome;
  result: PublishResult | null;
  /** Given back because its topic is a dead-letter topic by today's pattern. */
  isUnroutable?: boolean;
  /** Given back because the database did not hand out its bytes. */
  isUnloaded?: boolean;
}>;

/** As much as is held in memory at once on its way to the broker. */
const sliceBytes = 8 << 20;

/**
 * Sends claimed messages back to where they belong, in their order, outside of any transaction. Whatever is not
 * certain to be handed to the broker within its lease is given back instead of being sent; so is everything
 * behind a part of the batch that the broker did not take.
 */
export async function publishClaimed(
  deps: PublishDeps,
  batch: ClaimedBatch,
): Promise<ReadonlyMap<string, Published>> {
  const { publish } = deps;
  if (publish === null) return all(batch.messages, { end: 'not_published' });
  const published = new Map<string, Published>();
  let hasEnded = false;
  for (const messages of slicesOf(batch.messages)) {
    const part: ReadonlyMap<string, Published> = hasEnded
      ? all(messages, { end: 'released', reason: 'what was before it could not be sent' })
      : await publishSlice({ ...deps, publish }, { lease: batch.lease, messages });
    for (const [id, one] of part) published.set(id, one);
    hasEnded ||= [...part.values()].some(({ result, isUnloaded }) => isUnloaded === true || isOutage(result));
  }
  return published;
}

/** Nearly always the whole batch; large messages are taken a few at a time. */
function slicesOf(messages: readonly ClaimedMessage[]): readonly (readonly ClaimedMessage[])[] {
  const slices: ClaimedMessage[][] = [];
  let slice: ClaimedMessage[] = [];
  let bytes = 0;
  for (const message of messages) {
    if (slice.length > 0 && bytes + message.bytes > sliceBytes) {
      slices.push(slice);
      [slice, bytes] = [[], 0];
    }
    slice.push(message);
    bytes += message.bytes;
  }
  return slice.length > 0 ? [...slices, slice] : slices;
}

async function publishSlice(
  deps: PublishDeps & Readonly<{ publish: Publisher }>,
  slice: ClaimedBatch,
): Promise<ReadonlyMap<string, Published>> {
  const published = new Map<string, Published>();
  const sendable = slice.messages.filter((message) => {
    const isUnroutable = deps.isDeadLetterTopic(message.targetTopic);
    if (!isUnroutable && message.hasValue) return true;
    const reason = isUnroutable
      ? `its topic is a dead-letter topic: ${message.targetTopic}`
      : 'it was stored without its value';
    published.set(message.id, { outcome: { end: 'released', reason }, result: null, isUnroutable });
    return false;
  });
  let bodies: ReadonlyMap<string, MessageBody>;
  try {
    bodies = await bodiesOf(deps, slice.lease, sendable);
  } catch (error) {
    // What was sent before this must still be settled: the database may be back by then.
    const reason = `its bytes could not be loaded: ${messageOf(error)}`;
    return all(slice.messages, { end: 'released', reason }, { isUnloaded: true });
  }
  if (!hasTimeFor(slice.lease, deps.publishTimeoutMs, deps.clock))
    return all(slice.messages, { end: 'released', reason: 'not enough of the lease was left to publish' });
  // A body that is not there any more belongs to a message that was taken from us: it is not sent.
  const ready = sendable.flatMap((message) => {
    const body = bodies.get(message.id);
    return body === undefined ? [] : [{ message, body }];
  });
  const results = await deps.publish(
    ready.map(({ message, body }) => ({
      topic: message.targetTopic,
      key: body.key,
      value: body.value,
      headers: [...deps.stripFailureHeaders(body.headers, message.dialect), ...ownHeaders(message)],
    })),
  );
  ready.forEach(({ message }, i) => {
    const result = results[i];
    if (result !== undefined) published.set(message.id, { outcome: outcomeOf(result), result });
  });
  return published;
}

/** Whether nobody should go on sending now. */
export function isOutage(result: PublishResult | null): boolean {
  return result?.result === 'unknown' || (result?.result === 'failed' && result.retriable);
}

function all(
  messages: readonly ClaimedMessage[],
  outcome: AttemptOutcome,
  more: Pick<Published, 'isUnloaded'> = {},
): ReadonlyMap<string, Published> {
  return new Map(messages.map((message) => [message.id, { outcome, result: null, ...more }]));
}

/** The bytes to send: small ones came with the claim. A key made anew is noted before anything is sent. */
async function bodiesOf(
  deps: PublishDeps,
  lease: Lease,
  messages: readonly ClaimedMessage[],
): Promise<ReadonlyMap<string, MessageBody>> {
  const missing = messages.filter(({ body }) => body === null).map(({ id }) => id);
  const loaded =
    missing.length === 0 ? new Map<string, MessageBody>() : await deps.store.loadBodies(lease, missing);
  const bodies = new Map<string, MessageBody>();
  for (const { id, body } of messages) {
    const found = body ?? loaded.get(id);
    if (found !== undefined)
      bodies.set(id, deps.republishKey === 'uuid' ? { ...found, key: Buffer.from(randomUUID()) } : found);
  }
  if (deps.republishKey === 'uuid')
    await deps.store.noteHashes(
      lease,
      new Map([...bodies].map(([id, { key, value }]) => [id, recordSha256(key, value)])),
    );
  return bodies;
}

function ownHeaders(message: ClaimedMessage): readonly Header[] {
  const header = (key: string, value: string): Header => ({
    key: Buffer.from(key),
    value: Buffer.from(value),
  });
  const headers = [
    header(redriveHeaders.messageId, message.id),
    header(redriveHeaders.attempt, String(message.attemptNo)),
  ];
  if (message.originalTimestampMs !== null)
    headers.push(header(redriveHeaders.originalTimestamp, String(message.originalTimestampMs)));
  return headers;
}

function outcomeOf(result: PublishResult): AttemptOutcome {
  switch (result.result) {
    case 'acked':
      return { end: 'published', partition: result.partition, offset: result.offset };
    case 'failed':
      return { end: 'failed', error: `${result.code}: ${result.message}` };
    case 'unknown':
      return { end: 'unknown', error: `${result.code}: ${result.message}` };
    case 'skipped':
      return { end: 'released', reason: 'held back behind a record that could not be published' };
  }
}
