import { randomUUID } from 'node:crypto';
import type { Clock } from '../../kernel/clock.ts';
import { hasTimeFor } from '../../kernel/lease.ts';
import { recordSha256, type Header } from '../domain/record.ts';
import { redriveHeaders } from '../domain/redrive-headers.ts';
import type {
  AttemptOutcome,
  ClaimedBatch,
  ClaimedMessage,
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
}>;

/**
 * Sends claimed messages back to where they belong, outside of any transaction. Whatever is not certain to be
 * handed to the broker within its lease is given back instead of being sent.
 */
export async function publishClaimed(
  deps: PublishDeps,
  batch: ClaimedBatch,
): Promise<ReadonlyMap<string, Published>> {
  const { publish } = deps;
  if (publish === null) return all(batch.messages, { end: 'not_published' });
  const keyed = await withKeys(deps, batch);
  if (!hasTimeFor(batch.lease, deps.publishTimeoutMs, deps.clock))
    return all(batch.messages, { end: 'released', reason: 'not enough of the lease was left to publish' });

  const published = new Map<string, Published>();
  const sendable = keyed.filter(({ message }) => {
    const isUnroutable = deps.isDeadLetterTopic(message.targetTopic);
    if (!isUnroutable && message.hasValue) return true;
    const reason = isUnroutable
      ? `its topic is a dead-letter topic: ${message.targetTopic}`
      : 'it was stored without its value';
    published.set(message.id, { outcome: { end: 'released', reason }, result: null, isUnroutable });
    return false;
  });
  const results = await publish(
    sendable.map(({ message, key }) => ({
      topic: message.targetTopic,
      key,
      value: message.value,
      headers: [...deps.stripFailureHeaders(message.headers, message.dialect), ...ownHeaders(message)],
    })),
  );
  sendable.forEach(({ message }, i) => {
    const result = results[i];
    if (result !== undefined) published.set(message.id, { outcome: outcomeOf(result), result });
  });
  return published;
}

function all(messages: readonly ClaimedMessage[], outcome: AttemptOutcome): ReadonlyMap<string, Published> {
  return new Map(messages.map((message) => [message.id, { outcome, result: null }]));
}

type Keyed = Readonly<{ message: ClaimedMessage; key: Buffer | null }>;

/** The original key, or a new one for each attempt; then its hash is noted before anything is sent. */
async function withKeys(deps: PublishDeps, batch: ClaimedBatch): Promise<readonly Keyed[]> {
  if (deps.republishKey === 'original')
    return batch.messages.map((message) => ({ message, key: message.key }));
  const keyed = batch.messages.map((message) => ({ message, key: Buffer.from(randomUUID()) }));
  const hashes = keyed.map(({ message, key }) => [message.id, recordSha256(key, message.value)] as const);
  await deps.store.noteHashes(batch.lease, new Map(hashes));
  return keyed;
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
