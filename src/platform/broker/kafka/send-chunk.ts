import { NumericMap, produceV10, produceV11, produceV9, type MessageRecord } from '@platformatic/kafka';
import { sleep } from '../../../kernel/clock.ts';
import type { Compression, OutgoingRecord, PublishFault, PublishResult } from '../port.ts';
import { offered } from './api-version.ts';
import type { Cluster } from './cluster.ts';
import { halfwayTo, hasPassed, type Deadline } from './deadline.ts';
import {
  faultBeforeSend,
  faultOf,
  isRetriable,
  protocolCode,
  protocolMessage,
  responseOf,
  sessionCodes,
  toAppError,
} from './kafka-errors.ts';
import type { ProducerSession } from './producer-sessions.ts';

export type Chunk = Readonly<{
  topic: string;
  topicId: string;
  partition: number;
  records: readonly OutgoingRecord[];
  compression: Compression;
  session: ProducerSession;
  sequence: number;
}>;

export type SendOutcome =
  | Readonly<{ outcome: 'acked'; baseOffset: bigint }>
  | Readonly<{ outcome: 'failed'; fault: PublishFault; retriable: boolean; code: string; message: string }>
  | Readonly<{ outcome: 'unknown'; code: string; message: string }>;

type Attempt =
  | Readonly<{ step: 'acked'; baseOffset: bigint }>
  | Readonly<{
      step: 'again' | 'stop';
      mayBeWritten: boolean;
      fault: PublishFault;
      retriable: boolean;
      code: string;
      message: string;
    }>;

/**
 * A batch gets half of the time that its caller has left, and at least this much: the partitions that wait for their
 * turn behind a broker that hangs need the rest.
 */
const leastSendMs = 5000;
/** A leader election takes a few hundred milliseconds. */
const retryDelayMs = 150;
/** Long enough for a leader to move or to load. */
const retriesWhenNotWritten = 5;
const allReplicas = -1;
/** Shorter than the deadline, so that a slow broker leaves time for a second try. */
const brokerTimeoutMs = 1500;

/** Errors after which the batch may be in the log. */
const mayBeWrittenCodes: ReadonlySet<string> = new Set([
  'REQUEST_TIMED_OUT',
  'NOT_ENOUGH_REPLICAS_AFTER_APPEND',
  'KAFKA_STORAGE_ERROR',
  'UNKNOWN_SERVER_ERROR',
  'DUPLICATE_SEQUENCE_NUMBER',
]);

/**
 * Sends one batch to one partition. The broker recognises a batch that is sent again by its session and sequence, so a
 * retry never writes twice. A batch that was certainly not written is retried a few times; one that may have been
 * written is retried until the deadline, to learn what happened.
 */
export async function sendChunk(
  cluster: Cluster,
  chunk: Chunk,
  callerDeadline: Deadline,
): Promise<SendOutcome> {
  const deadline = halfwayTo(callerDeadline, leastSendMs);
  const messages = toMessages(chunk);
  let mayBeWritten = false;
  for (let attempt = 0; ; attempt++) {
    const result = await attemptSend(cluster, { ...chunk, messages }, deadline);
    if (result.step === 'acked') return { outcome: 'acked', baseOffset: result.baseOffset };
    mayBeWritten ||= result.mayBeWritten;
    const { step, fault, retriable, code, message } = result;
    const goesOn = step === 'again' && (mayBeWritten || attempt < retriesWhenNotWritten);
    if (goesOn && !hasPassed(deadline)) {
      cluster.forget(chunk.topic);
      await sleep(retryDelayMs, deadline.signal);
    }
    if (!goesOn || hasPassed(deadline))
      return mayBeWritten
        ? { outcome: 'unknown', code, message }
        : { outcome: 'failed', fault, retriable, code, message };
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
      return { ...again(isSent, 'ABORTED', 'the publish was aborted'), step: 'stop', fault: 'cluster' };
    const { kind } = toAppError(error);
    const { fault, retriable, code, message } = notSent(error, undefined);
    const step = kind === 'unavailable' && code !== 'CLOSED' ? 'again' : 'stop';
    return { step, mayBeWritten: isSent, fault, retriable, code, message };
  }
}

/** The node to send to; an error if the topic was created again or the partition is gone. */
async function leaderFor(cluster: Cluster, chunk: Chunk, deadline: Deadline): Promise<number | Attempt> {
  const view = (await cluster.topics([chunk.topic], deadline)).get(chunk.topic);
  if (view?.code !== undefined)
    return {
      ...stopped(view.code, isRetriable(view.code) && view.code !== unknownTopic),
      fault: faultBeforeSend(view.code),
    };
  const node = view?.leaders[chunk.partition];
  // The topic exists, but our metadata is outdated: the next publish assigns the records again.
  if (view?.topicId !== chunk.topicId || node === undefined)
    return { ...stopped(unknownTopic, true), fault: 'cluster' };
  return node < 0 ? again(false, 'LEADER_NOT_AVAILABLE') : node;
}

function afterError(code: string, detail: string | null | undefined): Attempt {
  const message = detail ?? protocolMessage(code);
  const mayBeWritten = mayBeWrittenCodes.has(code);
  if (sessionCodes.has(code)) return { ...stopped(code, true, message), mayBeWritten };
  if (isRetriable(code) || mayBeWritten) return again(mayBeWritten, code, message);
  return stopped(code, false, message);
}

const unknownTopic = 'UNKNOWN_TOPIC_OR_PARTITION';

const again = (mayBeWritten: boolean, code: string, message = protocolMessage(code)) =>
  ({ step: 'again', mayBeWritten, fault: faultOf(code), retriable: true, code, message }) as const;

const stopped = (code: string, retriable: boolean, message = protocolMessage(code)) =>
  ({ step: 'stop', mayBeWritten: false, fault: faultOf(code), retriable, code, message }) as const;

/** Results have Kafka's codes, or ours without the prefix. */
const shortCode = (code: string): string => code.replace(/^SYS_BROKER_/, '');

/**
 * The deadline passed, or the cluster was unavailable, before the record was sent. Refused credentials count as
 * unavailable: the record is not the cause, and every other record would fail too. A missing right to write to any
 * topic also ends here, because the broker refuses the producer session.
 */
export function notSent(
  error: unknown,
  signal: AbortSignal | undefined,
): Extract<PublishResult, { result: 'failed' }> {
  if (signal?.aborted)
    return {
      result: 'failed',
      fault: 'cluster',
      retriable: true,
      code: 'ABORTED',
      message: 'the publish was aborted',
    };
  const { code: longCode, message } = toAppError(error);
  const code = shortCode(longCode);
  const fault = faultBeforeSend(code);
  return { result: 'failed', fault, retriable: fault === 'cluster', code, message };
}

function batchOptions({ topic, partition, compression, session, sequence }: Chunk) {
  const sequences = new NumericMap([[`${topic}:${partition}`, sequence]]);
  return { ...session, sequences, compression };
}

/** Never with the original timestamps: retention may delete such records at the next roll of a segment. */
function toMessages({ topic, partition, records }: Chunk): MessageRecord[] {
  const now = BigInt(Date.now());
  return records.map(({ key, value, headers, timestamp = now }) => {
    const message = { topic, partition, key, value, headers: toHeaderMap(headers), timestamp };
    // Key and value may be null, despite the client's types.
    return message as MessageRecord;
  });
}

/** A Map compares Buffers by identity, so headers with equal names stay separate. */
function toHeaderMap(headers: OutgoingRecord['headers']): Map<Buffer, Buffer | null> {
  const map = new Map<Buffer, Buffer | null>();
  for (const { key, value } of headers) map.set(map.has(key) ? Buffer.from(key) : key, value);
  return map;
}
