import { hash } from 'node:crypto';

/** A Kafka header as it arrived. A record's headers are an ordered list: names may repeat, values may be null. */
export type Header = Readonly<{ key: Buffer; value: Buffer | null }>;

/** A record as the broker keeps it: these bytes are the truth, everything else is derived from them. */
export type RawRecord = Readonly<{
  offset: bigint;
  timestamp: bigint;
  key: Buffer | null;
  value: Buffer | null;
  headers: readonly Header[];
}>;

/** One partition of one incarnation of a topic: a topic deleted and made again has another id. */
export type PartitionRef = Readonly<{ topic: string; topicId: string; partition: number }>;

/**
 * Identifies what was published: length-prefixed key and value, so that bytes cannot move from one to the
 * other, with -1 for null, so that null differs from empty. The claim computes the same in SQL.
 */
export function recordSha256(key: Buffer | null, value: Buffer | null): Buffer {
  return hash('sha256', Buffer.concat([framed(key), framed(value)]), 'buffer');
}

function framed(bytes: Buffer | null): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(bytes === null ? -1 : bytes.length);
  return bytes === null ? length : Buffer.concat([length, bytes]);
}
