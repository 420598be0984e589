import { randomUUID } from 'node:crypto';
import type { Compression, Header } from '../../kernel/broker-record.ts';
import { messageOf, type AppError } from '../../kernel/errors.ts';
import { hasTimeFor, type Lease } from '../../kernel/lease.ts';
import type { OutgoingRecord, PublishResult } from '../../platform/broker/port.ts';
import type { Worker } from '../../platform/work/work.ts';
import { releaseReasonOf, type ReleaseReason } from '../domain/message.ts';
import type { Payloads } from '../domain/payloads.ts';
import { recordSha256 } from '../domain/record-sha256.ts';
import { redriveHeaders } from '../domain/redrive-headers.ts';
import type { IsAllowedTarget } from '../domain/target-rule.ts';
import { readHeaders } from '../stored-headers.ts';
import type { MessageBody } from '../stored-message.ts';
import {
  loadBodies,
  noteHashes,
  type ClaimedBatch,
  type ClaimedMessage,
  type StoredBody,
} from './claim-messages.ts';
import type { KeyOrder } from './key-order.ts';
import type { AttemptOutcome } from './settle-messages.ts';

/** One result per record, in order. */
export type Publish = (records: readonly OutgoingRecord[]) => Promise<readonly PublishResult[]>;

export type PublishDeps = Readonly<{
  worker: Worker;
  payloads: Payloads;
  /** Null without a broker: then a retry resolves the message and reports that nothing was sent. */
  publish: Publish | null;
  publishTimeoutMs: number;
  republishKey: 'original' | 'uuid';
  /** `source`: the codec of the record's batch on the dead-letter topic. */
  republishCompression: Compression | 'source';
  /** Removes the failure headers of every dialect, and our own. */
  stripFailureHeaders: (headers: readonly Header[], dialect: string | null) => readonly Header[];
  isDeadLetterTopic: (topic: string) => boolean;
  isAllowedTarget: IsAllowedTarget;
}>;

/** What happened to a claimed message. */
export type Published = Readonly<{
  outcome: AttemptOutcome;
  /** The broker's result; null if the message was not sent. */
  result: PublishResult | null;
  /** Why the attempt was released; null if it was not. */
  release: ReleaseReason | null;
  /** Of a release; for an answer about this message alone. */
  error?: AppError;
}>;

export type PublishedById = ReadonlyMap<string, Published>;

/** How many bytes of bodies are in memory at once. */
const sliceBytes = 8 << 20;

/**
 * Publishes claimed messages to their topics, in order and outside of any transaction. Releases a message instead of
 * sending it if the lease may expire before the broker answers, if an earlier part of the batch met an outage, or if
 * `order` blocks its key.
 */
export async function publishClaimed(
  deps: PublishDeps,
  batch: ClaimedBatch,
  order: KeyOrder | null = null,
): Promise<PublishedById> {
  const { publish } = deps;
  if (publish === null)
    return forAll(batch.messages, { outcome: { end: 'not_published' }, result: null, release: null });
  const published = new Map<string, Published>();
  let ended: Published | null = null;
  for (const messages of slicesOf(batch.messages)) {
    const slice: PublishedById =
      ended === null
        ? await publishSlice({ ...deps, publish }, { lease: batch.lease, messages }, order)
        : forAll(messages, ended);
    for (const [id, one] of slice) published.set(id, one);
    ended ??= endAfter(slice);
  }
  return published;
}

/** Usually the whole batch; only large messages are split. */
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

/** Why the rest of the batch is released, if it is. */
function endAfter(slice: PublishedById): Published | null {
  for (const one of slice.values()) {
    if (one.release === 'not_loaded') return one;
    if (isOutage(one.result)) return released('call_ended', 'an earlier part of the batch could not be sent');
  }
  return null;
}

/** check -> load -> send -> judge */
async function publishSlice(
  deps: PublishDeps & Readonly<{ publish: Publish }>,
  { lease, messages }: ClaimedBatch,
  order: KeyOrder | null,
): Promise<PublishedById> {
  const published = new Map<string, Published>();
  for (const message of messages) {
    const refused = checkMessage(deps, message, order);
    if (refused !== null) published.set(message.id, refused);
  }
  const sendable = messages.filter(({ id }) => !published.has(id));

  let bodies: ReadonlyMap<string, MessageBody>;
  try {
    const read = await readBodies(deps, lease, sendable);
    bodies = read.bodies;
    for (const [id, error] of read.unreadable) {
      published.set(id, { ...released('unreadable', `${error.code}: ${error.message}`), error });
      const message = sendable.find((one) => one.id === id);
      if (message !== undefined) order?.refuse(message);
    }
  } catch (error) {
    // Earlier slices were sent and must still be settled, so this does not throw.
    return forAll(messages, released('not_loaded', `failed to load the message: ${messageOf(error)}`));
  }
  if (!hasTimeFor(lease, deps.publishTimeoutMs, deps.worker.clock))
    return forAll(messages, released('no_time', 'too little time left on the lease to publish'));

  // A message without a body was taken over: it is not sent.
  const ready = sendable.flatMap((message) => {
    const body = bodies.get(message.id);
    return body === undefined ? [] : [{ message, record: recordOf(deps, message, body) }];
  });
  const results = await deps.publish(ready.map(({ record }) => record));

  ready.forEach(({ message }, i) => {
    const result = results[i];
    if (result === undefined) return;
    const one = judge(result);
    if (one.release === null && result.result !== 'acked') order?.refuse(message);
    published.set(message.id, one);
  });
  return published;
}

function checkMessage(deps: PublishDeps, message: ClaimedMessage, order: KeyOrder | null): Published | null {
  if (deps.isDeadLetterTopic(message.targetTopic))
    return released('unroutable', `its topic is a dead-letter topic: ${message.targetTopic}`);
  if (!message.isRouted && !deps.isAllowedTarget(message.targetTopic))
    return released('not_allowed', `its topic is not in dlq.allowed_targets: ${message.targetTopic}`);
  if (!message.hasValue) return released('no_value', 'it was stored without its value');
  const isBlocked = order !== null && order.blockedBy(message) !== null;
  return isBlocked ? released('blocked', 'an earlier message with its key was not sent') : null;
}

type Read = Readonly<{
  bodies: ReadonlyMap<string, MessageBody>;
  /** Cannot be decrypted: they stay as they are, and the others are sent. */
  unreadable: ReadonlyMap<string, AppError>;
}>;

/** Small bodies came with the claim. The hash of a message with a new key is stored before it is sent. */
async function readBodies(
  deps: PublishDeps,
  lease: Lease,
  messages: readonly ClaimedMessage[],
): Promise<Read> {
  const missing = messages.filter(({ body }) => body === null).map(({ id }) => id);
  const loaded = await loadBodies(deps, lease, missing);
  const stored = messages.flatMap(({ id, body }) => body ?? loaded.get(id) ?? []);
  const bodies = new Map<string, MessageBody>();
  const unreadable = new Map<string, AppError>();
  (await deps.payloads.open(stored)).forEach((opened, i) => {
    const id = stored[i]?.id ?? '';
    if (opened.error !== null) return unreadable.set(id, opened.error);
    const { key, value, headers } = opened.parts;
    return bodies.set(id, { key, value, headers: readHeaders(headers) });
  });
  if (deps.republishKey === 'uuid') await giveNewKeys(deps, lease, { stored, bodies });
  return { bodies, unreadable };
}

/** The hashes that the claim noted are of the old keys. */
async function giveNewKeys(
  deps: PublishDeps,
  lease: Lease,
  { stored, bodies }: Readonly<{ stored: readonly StoredBody[]; bodies: Map<string, MessageBody> }>,
): Promise<void> {
  const sealed = new Set(stored.flatMap(({ id, isSealed }) => (isSealed && bodies.has(id) ? [id] : [])));
  const hashes = sealed.size === 0 ? null : await deps.payloads.hashes();
  const noted = new Map<string, Buffer>();
  for (const [id, body] of bodies) {
    const key = Buffer.from(randomUUID());
    bodies.set(id, { ...body, key });
    const sha256 = recordSha256(key, body.value);
    noted.set(id, sealed.has(id) && hashes !== null ? hashes.ofRecord(sha256) : sha256);
  }
  await noteHashes(deps, lease, noted);
}

function recordOf(deps: PublishDeps, message: ClaimedMessage, body: MessageBody): OutgoingRecord {
  return {
    topic: message.targetTopic,
    key: body.key,
    value: body.value,
    headers: [...deps.stripFailureHeaders(body.headers, message.dialect), ...ownHeaders(message)],
    // The database's clock: Kafka rejects records from a machine whose clock is hours ahead.
    timestamp: message.claimedAtMs,
    compression:
      deps.republishCompression === 'source' ? (message.compression ?? 'unknown') : deps.republishCompression,
  };
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
  if (message.version > 0) headers.push(header(redriveHeaders.version, String(message.version)));
  return headers;
}

function judge(result: PublishResult): Published {
  const release = releaseReasonOf(result);
  return { outcome: outcomeOf(result, release), result, release };
}

function outcomeOf(result: PublishResult, release: ReleaseReason | null): AttemptOutcome {
  switch (result.result) {
    case 'acked':
      return { end: 'published', partition: result.partition, offset: result.offset };
    case 'failed': {
      const error = `${result.code}: ${result.message}`;
      return release === null ? { end: 'failed', error } : { end: 'released', reason: error };
    }
    case 'unknown':
      return { end: 'unknown', error: `${result.code}: ${result.message}` };
    case 'skipped':
      return { end: 'released', reason: 'an earlier message with its key or in its partition was not sent' };
  }
}

/** Whether to stop sending. A refusal because of the record or its topic says nothing about other messages. */
export function isOutage(result: PublishResult | null): boolean {
  if (result?.result === 'unknown') return true;
  return result?.result === 'failed' && result.fault === 'cluster';
}

export function released(release: ReleaseReason, reason: string): Published {
  return { outcome: { end: 'released', reason }, result: null, release };
}

export function forAll(messages: readonly ClaimedMessage[], one: Published): PublishedById {
  return new Map(messages.map(({ id }) => [id, one]));
}

export function outcomesOf(published: PublishedById): ReadonlyMap<string, AttemptOutcome> {
  return new Map([...published].map(([id, { outcome }]) => [id, outcome]));
}
