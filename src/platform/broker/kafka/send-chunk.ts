import { NumericMap, produceV10, produceV11, produceV9, type MessageRecord } from '@platformatic/kafka';
import { sleep } from '../../../kernel/clock.ts';
import type { OutgoingRecord, PublishResult } from '../port.ts';
import { offered } from './api-version.ts';
import type { Cluster } from './cluster.ts';
import { hasPassed, noLaterThan, type Deadline } from './deadline.ts';
import { isRetriable, protocolCode, protocolMessage, responseOf, toAppError } from './kafka-errors.ts';
import type { ProducerSession } from './producer-sessions.ts';

export type Chunk = Readonly<{
  topic: string;
  topicId: string;
  partition: number;
  records: readonly OutgoingRecord[];
  session: ProducerSession;
  sequence: number;
}>;

export type SendOutcome =
  | Readonly<{ outcome: 'acked'; baseOffset: bigint }>
  /** Not retriable: the broker has something against the topic or the records themselves. */
  | Readonly<{ outcome: 'failed'; retriable: boolean; code: string; message: string }>
  | Readonly<{ outcome: 'unknown'; code: string; message: string }>;

type Attempt =
  | Readonly<{ step: 'acked'; baseOffset: bigint }>
  | Readonly<{
      step: 'again' | 'stop';
      mayBeWritten: boolean;
      retriable: boolean;
      code: string;
      message: string;
    }>;

const sendDeadlineMs = 5000;
const retryDelayMs = 150;
/** Long enough for a leader to move or to finish loading. */
const retriesWhenNotWritten = 5;
const allReplicas = -1;
const brokerTimeoutMs = 1500;

/** The leader answered with an error, but the batch may be in the log. */
const mayBeWrittenCodes: ReadonlySet<string> = new Set([
  'REQUEST_TIMED_OUT',
  'NOT_ENOUGH_REPLICAS_AFTER_APPEND',
  'KAFKA_STORAGE_ERROR',
  'UNKNOWN_SERVER_ERROR',
  'DUPLICATE_SEQUENCE_NUMBER',
]);

/** The broker has lost track of the session: sending again under it is pointless, under a new one it is fine. */
const sessionCodes: ReadonlySet<string> = new Set([
  'OUT_OF_ORDER_SEQUENCE_NUMBER',
  'UNKNOWN_PRODUCER_ID',
  'INVALID_PRODUCER_EPOCH',
  'INVALID_PRODUCER_ID_MAPPING',
  'DUPLICATE_SEQUENCE_NUMBER',
]);

/**
 * Sends one batch to one partition. The broker knows a batch that is sent again by its session and sequence, so
 * trying again never writes twice. What was certainly not written is tried again a few times; what may have been
 * written is tried until the deadline, because an answer is worth having.
 */
export async function sendChunk(
  cluster: Cluster,
  chunk: Chunk,
  callerDeadline: Deadline,
): Promise<SendOutcome> {
  const deadline = noLaterThan(callerDeadline, sendDeadlineMs);
  const messages = toMessages(chunk);
  let mayBeWritten = false;
  for (let attempt = 0; ; attempt++) {
    const result = await attemptSend(cluster, { ...chunk, messages }, deadline);
    if (result.step === 'acked') return { outcome: 'acked', baseOffset: result.baseOffset };
    mayBeWritten ||= result.mayBeWritten;
    const { step, retriable, code, message } = result;
    const goesOn = step === 'again' && (mayBeWritten || attempt < retriesWhenNotWritten);
    if (goesOn && !hasPassed(deadline)) {
      cluster.forget(chunk.topic);
      await sleep(retryDelayMs, deadline.signal);
    }
    if (!goesOn || hasPassed(deadline))
      return mayBeWritten
        ? { outcome: 'unknown', code, message }
        : { outcome: 'failed', retriable, code, message };
  }
}

async function attemptSend(
  cluster: Cluster,
  chunk: Chunk & Readonly<{ messages: MessageRecord[] }>,
  deadline: Deadline,
): Promise<Attempt> {
  let isSent = false;
  try {
    const node = await leaderFor(cluster, chunk, deadline);
    if (typeof node !== 'number') return node;
    const response = await cluster.askNode({ node, purpose: 'produce' }, deadline, 'produce', (link) => {
      const api = offered(link, [produceV11.api, produceV10.api, produceV9.api]);
      isSent = true;
      return responseOf(
        api.async(link.connection, allReplicas, brokerTimeoutMs, chunk.messages, batchOptions(chunk)),
      );
    });
    const written = typeof response === 'object' ? response.responses[0]?.partitionResponses[0] : undefined;
    if (written?.index !== chunk.partition) return again(true, 'UNKNOWN_SERVER_ERROR');
    if (written.errorCode === 0) return { step: 'acked', baseOffset: written.baseOffset };
    return afterError(protocolCode(written.errorCode), written.errorMessage);
  } catch (error) {
    if (deadline.signal?.aborted)
      return { ...again(isSent, 'ABORTED', 'the publish was aborted'), step: 'stop' };
    const { code, kind, message } = toAppError(error);
    const step = kind === 'unavailable' && code !== 'SYS_BROKER_CLOSED' ? 'again' : 'stop';
    return { step, mayBeWritten: isSent, retriable: true, code: shortCode(code), message };
  }
}

/** The node to send to; the same topic under another id, or a partition that is gone, is not where this belongs. */
async function leaderFor(cluster: Cluster, chunk: Chunk, deadline: Deadline): Promise<number | Attempt> {
  const view = (await cluster.topics([chunk.topic], deadline)).get(chunk.topic);
  if (view?.code !== undefined)
    return stopped(view.code, isRetriable(view.code) && view.code !== unknownTopic);
  const node = view?.leaders[chunk.partition];
  if (view?.topicId !== chunk.topicId || node === undefined) return stopped(unknownTopic, true);
  return node < 0 ? again(false, 'LEADER_NOT_AVAILABLE') : node;
}

function afterError(code: string, detail: string | null | undefined): Attempt {
  const message = detail ?? protocolMessage(code);
  const mayBeWritten = mayBeWrittenCodes.has(code);
  if (sessionCodes.has(code)) return { step: 'stop', mayBeWritten, retriable: true, code, message };
  if (isRetriable(code) || mayBeWritten) return again(mayBeWritten, code, message);
  return stopped(code, false, message);
}

const unknownTopic = 'UNKNOWN_TOPIC_OR_PARTITION';

const again = (mayBeWritten: boolean, code: string, message = protocolMessage(code)) =>
  ({ step: 'again', mayBeWritten, retriable: true, code, message }) as const;

const stopped = (code: string, retriable: boolean, message = protocolMessage(code)): Attempt => ({
  step: 'stop',
  mayBeWritten: false,
  retriable,
  code,
  message,
});

/** Results carry Kafka's codes and, for what has none, ours without the prefix. */
const shortCode = (code: string): string => code.replace(/^SYS_BROKER_/, '');

/**
 * The caller's time was over, or the cluster away, before the record was handed over. Refused credentials count
 * as away too: nothing is wrong with the record, and until they are mended every other one would fail as well.
 */
export function notSent(
  error: unknown,
  signal: AbortSignal | undefined,
): Extract<PublishResult, { result: 'failed' }> {
  if (signal?.aborted)
    return { result: 'failed', retriable: true, code: 'ABORTED', message: 'the publish was aborted' };
  const { code, message } = toAppError(error);
  return { result: 'failed', retriable: true, code: shortCode(code), message };
}

function batchOptions({ topic, partition, session, sequence }: Chunk) {
  const sequences = new NumericMap([[`${topic}:${partition}`, sequence]]);
  return { ...session, sequences };
}

/** Timestamps are of now: with the original ones a topic's retention may delete the records at the next roll. */
function toMessages({ topic, partition, records }: Chunk): MessageRecord[] {
  const timestamp = BigInt(Date.now());
  return records.map(({ key, value, headers }) => {
    const message = { topic, partition, key, value, headers: toHeaderMap(headers), timestamp };
    // The client's types do not know that a key and a value may be null; its encoder does.
    return message as MessageRecord;
  });
}

/** Keys are compared as objects, so a fresh Buffer for each header keeps those with equal names apart. */
function toHeaderMap(headers: OutgoingRecord['headers']): Map<Buffer, Buffer | null> {
  const map = new Map<Buffer, Buffer | null>();
  for (const { key, value } of headers) map.set(map.has(key) ? Buffer.from(key) : key, value);
  return map;
}
