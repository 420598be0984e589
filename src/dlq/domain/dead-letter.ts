import type { BrokerRecord } from '../../kernel/broker-record.ts';
import type { FingerprintBasis } from '../../kernel/fingerprint/fingerprint.ts';

/** A decoded dead letter: the record, and what failed, where and why. */
export type DeadLetter = Readonly<{
  record: BrokerRecord;
  /** The value can be stored as jsonb. */
  isJson: boolean;
  originalTopic: string;
  unroutable: boolean;
  dialect: string;
  errorMessage: string;
  errorClass: string | null;
  errorStack: string | null;
  consumerGroup: string | null;
  originalPartition: number | null;
  originalOffset: bigint | null;
  originalTimestampMs: bigint | null;
  fingerprint: string | null;
  fingerprintBasis: FingerprintBasis | null;
  /** What our own headers say, if a republished message came back; or what a watched redrive recognised. */
  lineage: Readonly<{
    messageId: string;
    attempt: number | null;
    version: number | null;
    headerTopic: string | null;
    /** How a watched redrive recognised it without our headers: where it was published, or its key and value. */
    matched?: 'place' | 'content';
  }> | null;
}>;

/** For a record whose decoded fields the database rejects: keeps its bytes, without the fields. */
export function undecodable(letter: DeadLetter, sourceTopic: string, reason: string): DeadLetter {
  return {
    record: letter.record,
    isJson: false,
    originalTopic: sourceTopic,
    unroutable: true,
    dialect: 'none',
    errorMessage: `unknown error (the record's fields could not be stored: ${reason})`,
    errorClass: null,
    errorStack: null,
    consumerGroup: null,
    originalPartition: null,
    originalOffset: null,
    originalTimestampMs: null,
    fingerprint: null,
    fingerprintBasis: null,
    lineage: null,
  };
}
