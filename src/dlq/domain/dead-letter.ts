import type { RawRecord } from './record.ts';

/** A dead letter as understood on arrival: what failed, where and why, beside the record itself. */
export type DeadLetter = Readonly<{
  record: RawRecord;
  /** PostgreSQL's JSON can hold the value. */
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
  /** What our own headers say, if a message that we re-drove has come back. */
  lineage: Readonly<{ messageId: string; attempt: number | null; toldTopic: string | null }> | null;
}>;

/** What is left when a record's derived fields cannot be stored: its bytes, and that it could not be read. */
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
    lineage: null,
  };
}
