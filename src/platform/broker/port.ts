/**
 * What the slices need from a broker. Its two implementations, Kafka and a local broker in this process, pass one
 * conformance suite.
 *
 * Reading uses no consumer groups: the caller stores the positions in PostgreSQL, with the rows, and fetches from
 * there. Publishing returns a result per record, in order, and separates "certainly not written" from "may have been
 * written", because the caller's next step differs.
 */

import type {
  BrokerRecord,
  Compression,
  Header,
  LogEnds,
  PartitionRef,
  SkippedRange,
} from '../../kernel/broker-record.ts';

export type { BrokerRecord, Compression, Header, LogEnds, PartitionRef, SkippedRange };

/** The node leads the partition; fetch the positions of one node together. */
export type PartitionInfo = PartitionRef & LogEnds & Readonly<{ node: number }>;

/** An error of one partition, or of a whole topic if `partition` is absent. */
export type PartitionTrouble = Readonly<{
  topic: string;
  partition?: number;
  code: string;
  message: string;
  /** The user lacks a right: a retry does not help. */
  isDenied: boolean;
}>;

export type PartitionListing = Readonly<{
  clusterId: string;
  partitions: readonly PartitionInfo[];
  troubles: readonly PartitionTrouble[];
}>;

export type Position = PartitionRef & Readonly<{ offset: bigint }>;

export type FetchedBatch = PartitionRef &
  LogEnds &
  Readonly<{
    records: readonly BrokerRecord[];
    /** Where to continue: after the last offset examined, also if it has no record. */
    nextOffset: bigint;
    /** In ascending order. With the records they cover every offset in [position, nextOffset). */
    skipped: readonly SkippedRange[];
  }>;

/**
 * `out_of_range`: the position is below the log start or beyond the end; `start` and `end` are the log ends.
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
  /** How long the broker waits for records if there are none. */
  maxWaitMs: number;
  maxBytes: number;
  maxBytesPerPartition: number;
  /** Each purpose has its own connections. Default `fetch`. */
  purpose?: 'fetch' | 'verify';
}>;

export type OutgoingRecord = Readonly<{
  topic: string;
  key: Buffer | null;
  value: Buffer | null;
  headers: readonly Header[];
  /** Milliseconds. Default: the time of this process when the record is sent. */
  timestamp?: bigint;
  /** Default `none`. `unknown` is sent uncompressed, and again with gzip if the record alone is too large. */
  compression?: Compression | 'unknown';
}>;

/**
 * Why a record was not written. `cluster`: no connection, leader, producer session or quorum. `topic`: it does not
 * exist, or we have no right to write to it. `record`: everything else.
 */
export type PublishFault = 'cluster' | 'topic' | 'record';

export type PublishResult =
  | Readonly<{ result: 'acked'; partition: number; offset: bigint }>
  /** Certainly not written. */
  | Readonly<{ result: 'failed'; fault: PublishFault; retriable: boolean; code: string; message: string }>
  /** Sent, but the broker did not answer: it may have been written. */
  | Readonly<{ result: 'unknown'; code: string; message: string }>
  /**
   * Not sent because of the record with this index: one with the same key that was refused, or one for the same
   * partition that met an outage.
   */
  | Readonly<{ result: 'skipped'; behind: number }>;

/** Why nothing can be published to a topic. */
export type TopicTrouble = Readonly<{ problem: 'missing' | 'denied'; code: string; message: string }>;

export type PublishOptions = Readonly<{ timeoutMs: number; signal?: AbortSignal }>;

export type MirroredPosition = PartitionRef & Readonly<{ offset: bigint }>;

export type CommittedOffset = PartitionRef & Readonly<{ offset: bigint; metadata: string }>;

export type Broker = Readonly<{
  /** Rejects with an AppError that says why the cluster cannot be reached (for example a wrong password). */
  clusterId(signal?: AbortSignal): Promise<string>;
  /**
   * Every partition of the topics that match; an error of one topic does not hide the others. A cluster does not list
   * topics that the user may not describe: those of `expected` are requested by name, and a missing right is reported
   * as an error.
   */
  partitions(
    matches: (topic: string) => boolean,
    signal?: AbortSignal,
    expected?: readonly string[],
  ): Promise<PartitionListing>;
  /** One result per position, in order. Rejects only if no request could be sent. */
  fetch(
    positions: readonly Position[],
    limits: FetchLimits,
    signal?: AbortSignal,
  ): Promise<readonly FetchResult[]>;
  /** The first offset at or after the timestamp, or the end of the log. */
  offsetAt(partition: PartitionRef, timestampMs: bigint, signal?: AbortSignal): Promise<bigint>;
  /** The groups that we may describe and that commit offsets; share groups commit none. */
  groups(signal?: AbortSignal): Promise<readonly string[]>;
  /** The offsets that the group committed; partitions without one are left out. Rejects if they cannot be read. */
  committed(
    group: string,
    partitions: readonly PartitionRef[],
    signal?: AbortSignal,
  ): Promise<readonly CommittedOffset[]>;
  /** Commits positions to the group, for tools that show lag, with the metadata `redrive/<topic id>`. */
  mirror(group: string, positions: readonly MirroredPosition[], signal?: AbortSignal): Promise<void>;
  /**
   * Those of the topics that do not exist or that we may not write to. If the cluster does not report our rights, the
   * topic counts as writable. Rejects if the cluster cannot be reached.
   */
  unwritable(topics: readonly string[], signal?: AbortSignal): Promise<ReadonlyMap<string, TopicTrouble>>;
  /** One result per record, in order. Never rejects because of a record or the broker. */
  publish(records: readonly OutgoingRecord[], options: PublishOptions): Promise<readonly PublishResult[]>;
  /** For tests, demos and `doctor`; does nothing if the topic exists. */
  createTopic(topic: string, partitions: number): Promise<void>;
  deleteTopic(topic: string): Promise<void>;
  close(): Promise<void>;
}>;

/** The metadata of an offset that we committed ourselves: such an offset is never used as a first position. */
export const mirrorMark = (topicId: string): string => `redrive/${topicId}`;
