import type { ArrivalPlan, KnownRow } from '../domain/arrivals.ts';
import type { DeadLetter } from '../domain/dead-letter.ts';
import type { Status } from '../domain/message.ts';
import type { Header, PartitionRef, RawRecord } from '../domain/record.ts';
import type { Lease } from '../../kernel/lease.ts';
import type { Outcome } from '../../kernel/outcome.ts';

/** What the use cases need from outside. Infra makes these real; nothing here knows PostgreSQL or Kafka. */

export type Message = Readonly<{
  id: string;
  originalTopic: string;
  errorMessage: string;
  retryCount: number;
  maxRetries: number;
  /** PostgreSQL's own text of the JSON: numbers never pass through JavaScript's. */
  payloadText: string | null;
  /** In lists a large payload is left out; the single message has it. */
  isPayloadOmitted: boolean;
  status: Status;
  createdAt: Date;
  /** With all its microseconds: a cursor made of milliseconds would skip rows. */
  createdAtExact: string;
  updatedAt: Date;
  lastRetryAt: Date | null;
  sourceTopic: string | null;
  sourcePartition: number | null;
  sourceOffset: bigint | null;
  key: Buffer | null;
  dialect: string | null;
  errorClass: string | null;
  errorStack: string | null;
  consumerGroup: string | null;
  originalPartition: number | null;
  originalOffset: bigint | null;
  originalTimestamp: Date | null;
  fingerprint: string | null;
  unroutable: boolean;
  parentId: string | null;
  resolution: string | null;
  attemptNo: number;
  leaseIsLive: boolean;
  leaseLost: boolean;
  isArchived: boolean;
}>;

/** A message's bytes: what was read, and what is published again. */
export type MessageBody = Readonly<{ key: Buffer | null; value: Buffer | null; headers: readonly Header[] }>;

export type HistoryEntry = Readonly<{
  at: Date;
  event: string;
  actor: string;
  reason: string | null;
  statusFrom: Status | null;
  statusTo: Status | null;
  retryCount: number;
  attemptNo: number;
  topic: string | null;
  partition: number | null;
  offset: bigint | null;
  detail: string | null;
}>;

export type MessageFilter = Readonly<{ topic?: string; status?: Status }>;

export type Keyset = Readonly<{ createdAt: string; id: string }>;

export type Count = Readonly<{ total: number; isEstimate: boolean }>;

export type MessageReader = Readonly<{
  /** Archived ones too. */
  find(id: string): Promise<Message | null>;
  findRaw(id: string): Promise<MessageBody | null>;
  /** Null when no message of this id, live, archived or deleted, has left a trace. */
  history(id: string): Promise<readonly HistoryEntry[]>;
  /** Newest first, beginning after `after` or at `offset`. */
  list(
    filter: MessageFilter,
    window: Readonly<{ limit: number; offset: number; after: Keyset | null }>,
  ): Promise<readonly Message[]>;
  count(filter: MessageFilter): Promise<Count>;
  topics(): Promise<readonly TopicSummary[]>;
}>;

export type TopicSummary = Readonly<{
  topic: string;
  counts: Readonly<Record<Status, bigint>>;
  oldestPendingAt: Date | null;
  arrivedPerMinute: number;
}>;

/** A message whose attempt has started: what to publish, and the lease that covers it. */
export type ClaimedMessage = Readonly<{
  id: string;
  targetTopic: string;
  /** False for a row of the system before ours whose value it could not keep: there is nothing to publish. */
  hasValue: boolean;
  /** How much memory its body takes. */
  bytes: number;
  /** Null where it is too large to come with the claim: a thousand of those would not fit into memory. */
  body: MessageBody | null;
  dialect: string | null;
  attemptNo: number;
  originalTimestampMs: bigint | null;
  retryCount: number;
  maxRetries: number;
}>;

export type ClaimedBatch = Readonly<{ lease: Lease; messages: readonly ClaimedMessage[] }>;

/** How an attempt ended, for the row and for its history. */
export type AttemptOutcome = Outcome<
  Readonly<{ end: 'published'; partition: number; offset: bigint }> | Readonly<{ end: 'not_published' }>
>;

export type Settled = Readonly<{
  /** The row's status after the settle, whoever wrote it. Stale and deleted ones are null. */
  statuses: ReadonlyMap<string, Status | null>;
}>;

/** Where messages go by today's rules whose stored topic is no place to go to; null leaves those out. */
export type Reroute = Readonly<{
  /** Those marked unroutable on arrival. */
  unroutable: string | null;
  /** Those whose original topic is itself a dead-letter topic, as the system before ours stored them. */
  misnamed: string | null;
}>;

export type ClaimOneOptions = Readonly<{
  id: string;
  actor: string;
  /** Also a message that lost its worker and has one attempt left; the caller has nothing else under way. */
  alone: boolean;
  reroute: Reroute;
}>;

export type ClaimManyOptions = Readonly<{
  topic: string;
  /** Rows whose original topic it is, or rows that came from it and belong elsewhere. */
  by: 'original' | 'source';
  actor: string;
  limit: number;
  alone: boolean;
  reroute: Reroute;
  /** Leaves out rows that are not marked unroutable, where their topic is a dead-letter topic without a route. */
  onlyUnroutable: boolean;
  /** Rows touched since, and rows that arrived since, are left out: each at most once per call. */
  since: RetryAllStart;
  /** A hint where to begin, so that the scan does not pass over rows already done again and again. */
  after: Keyset | null;
}>;

export type RetryAllStart = Readonly<{ epoch: bigint; at: string }>;

export type RetryStore = Readonly<{
  claimOne(options: ClaimOneOptions): Promise<ClaimedBatch>;
  claimMany(options: ClaimManyOptions): Promise<ClaimedBatch & Readonly<{ last: Keyset | null }>>;
  startRetryAll(): Promise<RetryAllStart>;
  /** Due messages without a route that are left; of a dead-letter topic those that name it as their origin too. */
  countUnroutable(topic: string, isDeadLetterTopic: boolean): Promise<number>;
  /** The bytes of claimed messages that are still ours. */
  loadBodies(lease: Lease, ids: readonly string[]): Promise<ReadonlyMap<string, MessageBody>>;
  /** Replaces what the claim noted as published, where the key is made anew for each attempt. */
  noteHashes(lease: Lease, sha256ById: ReadonlyMap<string, Buffer>): Promise<void>;
  /** Repeats until stored or until the lease is over; the same outcome twice is one outcome. */
  settle(lease: Lease, outcomes: ReadonlyMap<string, AttemptOutcome>, actor: string): Promise<Settled>;
  /** Ends attempts whose lease is over, of one message or of all; returns how many. */
  reap(id?: string): Promise<number>;
}>;

export type PersonAction = Readonly<{ id: string; actor: string; reason: string | null }>;

export type ActionStore = Readonly<{
  /** False when the row's status or lease did not allow it, or there is no such row. */
  markDead(action: PersonAction): Promise<boolean>;
  /** Moves an archived message back first. */
  reopen(action: PersonAction): Promise<boolean>;
  remove(action: PersonAction): Promise<boolean>;
}>;

export type ArchiveStore = Readonly<{
  archive(retentionDays: number): Promise<number>;
  purge(purgeDays: number): Promise<number>;
  /** Folds the running counts together. */
  compactCounts(): Promise<void>;
}>;

/** One record to publish, and how it went. Structurally the broker port's, which this slice may not import. */
export type Publisher = (
  records: readonly Readonly<{
    topic: string;
    key: Buffer | null;
    value: Buffer | null;
    headers: readonly Header[];
  }>[],
) => Promise<readonly PublishResult[]>;

export type PublishResult =
  | Readonly<{ result: 'acked'; partition: number; offset: bigint }>
  | Readonly<{ result: 'failed'; retriable: boolean; code: string; message: string }>
  | Readonly<{ result: 'unknown'; code: string; message: string }>
  | Readonly<{ result: 'skipped'; behind: number }>;

/** A leased partition and where it stands. */
export type HeldPartition = PartitionRef &
  Readonly<{
    id: bigint;
    lease: Lease;
    nextOffset: bigint;
    highOffset: bigint;
    backfillUntil: bigint | null;
  }>;

export type Batch = Readonly<{
  from: bigint;
  next: bigint;
  letters: readonly DeadLetter[];
  logStart: bigint;
  logEnd: bigint;
}>;

/** Decides under locks what arriving records do; null where every record is new for certain. */
export type PlanArrivals = (
  letters: readonly DeadLetter[],
  known: ReadonlyMap<string, KnownRow>,
  taken: ReadonlySet<bigint>,
) => ArrivalPlan;

export type IngestStore = Readonly<{
  /**
   * Stores rows and position in one transaction; false when the partition is no longer ours at `batch.from`,
   * and then nothing is stored. A record whose fields the database refuses is stored with its bytes alone.
   */
  store(held: HeldPartition, batch: Batch, plan: PlanArrivals | null): Promise<boolean>;
  /** Retention was faster: counts the gap and goes on at the log start. */
  skipLost(held: HeldPartition, logStart: bigint): Promise<boolean>;
}>;

export type SourcePartition = PartitionRef &
  Readonly<{
    clusterId: string;
    firstOffset: bigint;
    nextOffset: bigint;
    highOffset: bigint;
    backfillUntil: bigint | null;
    logStart: bigint | null;
    logEnd: bigint | null;
    stored: bigint;
    reopened: bigint;
    folded: bigint;
    notRecords: bigint;
    lost: bigint;
    reread: bigint;
    lastError: string | null;
    lastErrorAt: Date | null;
    isGone: boolean;
    isStopped: boolean;
    leaseOwner: string | null;
    leaseIsLive: boolean;
    storedAt: Date | null;
    lastSeek: LastSeek | null;
  }>;

export type LastSeek = Readonly<{ at: string; actor: string; reason: string; from: string; to: string }>;

export type DiscoveredPartition = PartitionRef & Readonly<{ start: bigint; end: bigint }>;

export type PartitionStore = Readonly<{
  /** Every partition row, of any cluster. */
  list(): Promise<readonly SourcePartition[]>;
  known(clusterId: string): Promise<readonly PartitionRef[]>;
  add(clusterId: string, found: readonly Readonly<PartitionRef & { firstOffset: bigint }>[]): Promise<void>;
  /** Ends and starts as the broker tells them; partitions not listed are marked gone. */
  observe(
    clusterId: string,
    found: readonly DiscoveredPartition[],
    troubled: ReadonlySet<string>,
  ): Promise<void>;
  /** A broker inside a process that is gone took its topics with it; ours is there. */
  forgetLocal(ourClusterId: string): Promise<void>;
  claim(clusterId: string, limit: number, leaseMs: number): Promise<readonly HeldPartition[]>;
  /** Prolongs leases. `locked`: still ours, but somebody has the row, and the lease is as it was; all others are lost. */
  renew(
    held: readonly HeldPartition[],
    leaseMs: number,
  ): Promise<Readonly<{ ids: ReadonlySet<bigint>; locked: ReadonlySet<bigint>; endsAtMs: number }>>;
  release(held: readonly HeldPartition[]): Promise<void>;
  /** Position and epoch as the database has them now; null when the lease is no longer ours. */
  reload(held: HeldPartition): Promise<HeldPartition | null>;
  noteError(held: HeldPartition, error: string, stop: boolean): Promise<void>;
  clearError(held: HeldPartition): Promise<void>;
  /** How many partitions one replica should read: its share among the fresh ones. */
  share(clusterId: string): Promise<number>;
  /** Sets the position back; false when the partition has never been read as far as that. */
  seek(
    partition: PartitionRef & Readonly<{ clusterId: string }>,
    to: Readonly<{ offset: bigint; actor: string; reason: string }>,
  ): Promise<boolean>;
}>;

export type FetchResult = PartitionRef &
  (
    | Readonly<{ records: readonly RawRecord[]; nextOffset: bigint; start: bigint; end: bigint }>
    | Readonly<{
        error: Readonly<{
          kind: 'out_of_range' | 'gone' | 'moved' | 'denied' | 'unavailable';
          code: string;
          message: string;
          start?: bigint;
          end?: bigint;
        }>;
      }>
  );

/** The part of the broker that reading needs; structurally the broker port. */
export type Source = Readonly<{
  clusterId(signal?: AbortSignal): Promise<string>;
  partitions(
    matches: (topic: string) => boolean,
    signal?: AbortSignal,
  ): Promise<
    Readonly<{
      clusterId: string;
      partitions: readonly Readonly<PartitionRef & { start: bigint; end: bigint; node: number }>[];
      troubles: readonly Readonly<{ topic: string; partition?: number; code: string; message: string }>[];
    }>
  >;
  fetch(
    positions: readonly Readonly<PartitionRef & { offset: bigint }>[],
    limits: Readonly<{ maxWaitMs: number; maxBytes: number; maxBytesPerPartition: number }>,
    signal?: AbortSignal,
  ): Promise<readonly FetchResult[]>;
  offsetAt(partition: PartitionRef, timestampMs: bigint, signal?: AbortSignal): Promise<bigint>;
  committed(
    group: string,
    partitions: readonly PartitionRef[],
    signal?: AbortSignal,
  ): Promise<readonly Readonly<PartitionRef & { offset: bigint; metadata: string }>[]>;
  mirror(
    group: string,
    positions: readonly Readonly<PartitionRef & { offset: bigint }>[],
    signal?: AbortSignal,
  ): Promise<void>;
}>;
