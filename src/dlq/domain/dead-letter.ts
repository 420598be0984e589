import type { BrokerRecord } from '../../kernel/broker-record.ts';
import type { FingerprintBasis } from '../../kernel/fingerprint/fingerprint.ts';
import { recordSha256 } from './record-sha256.ts';

/** Parts of a message that may be removed before it is stored; `error`: message, class, stack and failure headers. */
export const removableParts = ['key', 'value', 'headers', 'error'] as const;
export type RemovablePart = (typeof removableParts)[number];

/** Without one of these a message is not what was sent. */
export const publishedParts = ['key', 'value', 'headers'] as const satisfies readonly RemovablePart[];

/** As `isIncomplete` in SQL. */
export function isIncompleteWithout(removed: readonly RemovablePart[] | null): boolean {
  return publishedParts.some((part) => removed?.includes(part));
}

/** A decoded dead letter: the record as it is stored, and what failed, where and why. */
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
  /** What was removed, and the hash of the record as it was read, by which it is recognised; null if nothing was. */
  removed: Readonly<{ parts: readonly RemovablePart[]; sha256: Buffer }> | null;
}>;

/** The hash of the record as it was read. */
export function readSha256({ record, removed }: Pick<DeadLetter, 'record' | 'removed'>): Buffer {
  return removed?.sha256 ?? recordSha256(record.key, record.value);
}

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
    // Without its dialect, a retry would also publish the failure headers.
    removed: letter.removed === null ? null : { ...letter.removed, parts: [...removableParts] },
  };
}
