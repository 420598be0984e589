/**
 * What the slices need from a broker, and nothing of how Kafka does it. Two implementations (Kafka, and a
 * local one in this process) pass one conformance suite.
 *
 * Reading has no consumer groups: the caller owns the positions (it keeps them in PostgreSQL, with the rows)
 * and asks for bytes from there. Writing answers per record, in order, and tells "certainly not written" from
 * "may have been written", because the caller's next step differs.
 */

export type Header = Readonly<{ key: Buffer; value: Buffer | null }>;

/** A topic by name and by the id that changes when a topic is deleted and made again. */
export type TopicRef = Readonly<{ topic: string; topicId: string }>;

export type PartitionRef = TopicRef & Readonly<{ partition: number }>;

export type PartitionInfo = PartitionRef &
  Readonly<{
    /** The log start: the first offset that can still be read. */
    start: bigint;
    /** The last stable offset: what a read-committed reader can reach now. */
    end: bigint;
    /** The broker node that leads it; positions of one node are best fetched together. */
    node: number;
  }>;

/** Trouble with one partition (or with one topic, then `partition` is absent) while listing. */
export type PartitionTrouble = Readonly<{ topic: string; partition?: number; code: string; message: string }>;

export type PartitionListing = Readonly<{
  clusterId: string;
  partitions: readonly PartitionInfo[];
  troubles: readonly PartitionTrouble[];
}>;

export type Position = PartitionRef & Readonly<{ offset: bigint }>;

export type BrokerRecord = Readonly<{
  offset: bigint;
  timestamp: bigint;
  key: Buffer | null;
  value: Buffer | null;
  headers: readonly Header[];
}>;

export type FetchedBatch = PartitionRef &
  Readonly<{
    records: readonly BrokerRecord[];
    /** Where to read on: the end of what was looked at, beyond control records, aborted ones and holes. */
    nextOffset: bigint;
    /** Offsets in [position, nextOffset) that hold no record: control, aborted, or compacted away. */
    notRecords: bigint;
    start: bigint;
    end: bigint;
  }>;

/**
 * `out_of_range`: the position is below the log start or beyond the end; `start` and `end` say what there is.
 * `gone`: no such topic id or partition. `moved`: another node leads now, list again. `denied`: no right.
 * `unavailable`: try again later.
 */
export type FetchErrorKind = 'out_of_range' | 'gone' | 'moved' | 'denied' | 'unavailable';

export type FetchFailure = PartitionRef &
  Readonly<{
    error: Readonly<{ kind: FetchErrorKind; code: string; message: string; start?: bigint; end?: bigint }>;
  }>;

export type FetchResult = FetchedBatch | FetchFailure;

export type FetchLimits = Readonly<{
  /** How long the broker may hold the request when there is nothing to read. */
  maxWaitMs: number;
  maxBytes: number;
  maxBytesPerPartition: number;
}>;

export type OutgoingRecord = Readonly<{
  topic: string;
  key: Buffer | null;
  value: Buffer | null;
  headers: readonly Header[];
}>;

export type PublishResult =
  | Readonly<{ result: 'acked'; partition: number; offset: bigint }>
  /** Certainly not written. */
  | Readonly<{ result: 'failed'; retriable: boolean; code: string; message: string }>
  /** Sent without an answer: it may have been written. */
  | Readonly<{ result: 'unknown'; code: string; message: string }>
  /** Never handed to the broker: held back behind the failed record with this index, to keep the order. */
  | Readonly<{ result: 'skipped'; behind: number }>;

export type PublishOptions = Readonly<{ timeoutMs: number; signal?: AbortSignal }>;

export type MirroredPosition = PartitionRef & Readonly<{ offset: bigint }>;

export type CommittedOffset = PartitionRef & Readonly<{ offset: bigint; metadata: string }>;

export type Broker = Readonly<{
  /** Resolves while the cluster answers; rejects with an AppError that says why not (a wrong password by name). */
  clusterId(signal?: AbortSignal): Promise<string>;
  /** Every partition of the topics whose name `matches` accepts; one topic's trouble never hides the others. */
  partitions(matches: (topic: string) => boolean, signal?: AbortSignal): Promise<PartitionListing>;
  /** One result per position, in order. Rejects only when nothing could be asked at all. */
  fetch(
    positions: readonly Position[],
    limits: FetchLimits,
    signal?: AbortSignal,
  ): Promise<readonly FetchResult[]>;
  /** The first offset at or after the timestamp; the end where there is none. */
  offsetAt(partition: PartitionRef, timestampMs: bigint, signal?: AbortSignal): Promise<bigint>;
  /** What the group has committed; partitions without a commit are left out. Rejects when it cannot be asked. */
  committed(
    group: string,
    partitions: readonly PartitionRef[],
    signal?: AbortSignal,
  ): Promise<readonly CommittedOffset[]>;
  /** Commits positions to the group for the tools that show lag, marked `redrive/<topic id>`. */
  mirror(group: string, positions: readonly MirroredPosition[], signal?: AbortSignal): Promise<void>;
  /** One result per record, in order. Never rejects for trouble with records or with the broker. */
  publish(records: readonly OutgoingRecord[], options: PublishOptions): Promise<readonly PublishResult[]>;
  /** For tests, demos and `doctor`; existing topics are left alone. */
  createTopic(topic: string, partitions: number): Promise<void>;
  deleteTopic(topic: string): Promise<void>;
  close(): Promise<void>;
}>;

/** The metadata of an offset that we committed ourselves: it never becomes a first position. */
export const mirrorMark = (topicId: string): string => `redrive/${topicId}`;
