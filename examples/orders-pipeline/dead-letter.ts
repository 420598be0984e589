import type { BrokerRecord, Header, OutgoingRecord } from '../../src/platform/broker/port.ts';
import { JavaError } from './collect-payment.ts';

/** A record that a consumer could not process, where it was read, and why it failed. */
export type Failed = Readonly<{ topic: string; partition: number; record: BrokerRecord; error: Error }>;

/**
 * How a failed record becomes a dead letter that Redrive understands: the key, the value and all headers stay as
 * they are, byte for byte, and headers that tell of the failure are added. Keeping the headers matters twice.
 * They belong to the message, and after a retry they carry `redrive-message-id`: if the message fails again,
 * Redrive knows by it that this is the same one, and counts.
 *
 * This is the plain dialect, for services that write their dead letters themselves. Two headers are enough.
 */
export function plainDeadLetter(deadLetterTopic: string, { topic, record, error }: Failed): OutgoingRecord {
  return withHeaders(deadLetterTopic, record, [
    header('error', `${error.name}: ${error.message}`),
    header('original_topic', topic),
  ]);
}

/**
 * What Spring Kafka's DeadLetterPublishingRecoverer writes, so a service on Spring has nothing to do. It is
 * written by hand here only because the demo has no Java. Numbers are big-endian binary.
 */
export function springDeadLetter(deadLetterTopic: string, failed: Failed): OutgoingRecord {
  const { topic, partition, record, error } = failed;
  return withHeaders(deadLetterTopic, record, [
    header('kafka_dlt-exception-fqcn', 'org.springframework.kafka.listener.ListenerExecutionFailedException'),
    header(
      'kafka_dlt-exception-cause-fqcn',
      error instanceof JavaError ? error.className : 'java.lang.RuntimeException',
    ),
    header('kafka_dlt-exception-message', `Listener failed; ${error.message}`),
    header('kafka_dlt-exception-stacktrace', error instanceof JavaError ? error.javaStack : ''),
    header('kafka_dlt-original-topic', topic),
    header('kafka_dlt-original-partition', int32(partition)),
    header('kafka_dlt-original-offset', int64(record.offset)),
    header('kafka_dlt-original-timestamp', int64(record.timestamp)),
    header('kafka_dlt-original-timestamp-type', 'CreateTime'),
    header('kafka_dlt-original-consumer-group', 'payments-service'),
  ]);
}

/** The attempt that a record is: 0 when it comes from its producer, then as Redrive counts its retries. */
export function attemptOf({ headers }: BrokerRecord): number {
  const attempt = headers.findLast(({ key }) => key.toString() === 'redrive-attempt');
  return Number(attempt?.value?.toString() ?? 0);
}

function withHeaders(topic: string, record: BrokerRecord, more: readonly Header[]): OutgoingRecord {
  return { topic, key: record.key, value: record.value, headers: [...record.headers, ...more] };
}

function header(key: string, value: string | Buffer): Header {
  return { key: Buffer.from(key), value: Buffer.from(value) };
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

function int64(value: bigint): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE(value);
  return bytes;
}
