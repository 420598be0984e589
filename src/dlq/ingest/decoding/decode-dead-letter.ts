import type { DeadLetter } from '../../domain/dead-letter.ts';
import { createFingerprinter } from '../../../kernel/fingerprint/fingerprint.ts';
import { resolveOriginalTopic, type OriginalTopicRule } from '../../domain/original-topic.ts';
import type { PartitionRef, BrokerRecord } from '../../../kernel/broker-record.ts';
import { decodeFailure } from './decode-failure.ts';
import { isJsonForPostgres } from './json-view.ts';
import { readLineage } from './read-lineage.ts';

/** Decodes a record of a dead-letter topic into what failed, where and why. Never throws, whatever the bytes. */
export function createDecoder(options: {
  readonly rules: readonly OriginalTopicRule[];
  readonly isDeadLetterTopic: (topic: string) => boolean;
}): (record: BrokerRecord, source: PartitionRef) => DeadLetter {
  const fingerprintOf = createFingerprinter();

  return (record, source) => {
    const failure = decodeFailure(record.headers);
    const original = resolveOriginalTopic({
      headerTopic: failure.originalTopic,
      sourceTopic: source.topic,
      rules: options.rules,
      isDeadLetterTopic: options.isDeadLetterTopic,
    });
    const { fingerprint, basis } = fingerprintOf(failure);
    const { messageId, attempt, version } = readLineage(record.headers);
    return {
      record,
      isJson: record.value !== null && isJsonForPostgres(record.value),
      originalTopic: original.topic,
      unroutable: original.unroutable,
      dialect: failure.dialect,
      errorMessage: failure.errorMessage,
      errorClass: failure.errorClass ?? null,
      errorStack: failure.errorStack ?? null,
      consumerGroup: failure.consumerGroup ?? null,
      originalPartition: failure.originalPartition ?? null,
      originalOffset: failure.originalOffset ?? null,
      originalTimestampMs:
        failure.originalTimestampMs === undefined ? null : BigInt(failure.originalTimestampMs),
      fingerprint,
      fingerprintBasis: basis,
      lineage:
        messageId === null
          ? null
          : {
              messageId,
              attempt,
              version,
              headerTopic: original.by === 'headers' ? original.topic : null,
            },
      removed: null,
    };
  };
}
