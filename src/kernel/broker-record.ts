/** Kafka's words for records and partitions, shared by the broker port and the slices that read or write topics. */

/** A record's headers are an ordered list: names may repeat, values may be null. */
export type Header = Readonly<{ key: Buffer; value: Buffer | null }>;

/** Kafka's codecs. */
export type Compression = 'none' | 'gzip' | 'snappy' | 'lz4' | 'zstd';

export type BrokerRecord = Readonly<{
  offset: bigint;
  /** Milliseconds since 1970; -1 for none. */
  timestamp: bigint;
  key: Buffer | null;
  value: Buffer | null;
  headers: readonly Header[];
  /** The codec of the record's batch. */
  compression: Compression;
}>;

/** A partition of one incarnation of a topic: a topic that is deleted and created again gets a new id. */
export type PartitionRef = Readonly<{ topic: string; topicId: string; partition: number }>;

/**
 * Offsets in [from, to) without a record for the reader: transaction markers, records of aborted transactions, or
 * gaps left by compaction.
 */
export type SkippedRange = Readonly<{ kind: 'control' | 'aborted' | 'gap'; from: bigint; to: bigint }>;

/** The log start, the high watermark, and the last stable offset, up to which a read-committed reader can read. */
export type LogEnds = Readonly<{ start: bigint; end: bigint; stableEnd: bigint }>;
