import type { Lease } from '../../kernel/lease.ts';
import type { Status } from '../domain/job.ts';

/** What the use cases need from outside. */

export type NewJob = Readonly<{
  queue: string;
  /** JSON text. */
  payload: string;
  dedupeKey: string | null;
  priority: number;
  runAt: Date | null;
  maxRetries: number | null;
  trace: string | null;
}>;

export type EnqueuedJob = Readonly<{ jobId: string; status: Status; isDuplicate: boolean }>;

export type ClaimedJob = Readonly<{
  jobId: string;
  queue: string;
  /** As JavaScript has it, or its JSON text where that was asked for. */
  payload: unknown;
  /** It is long, so it has stayed in the database until the job starts: hundreds may be claimed ahead. */
  isPayloadApart: boolean;
  retryCount: number;
  maxRetries: number;
  deferrals: number;
  trace: string | null;
  lease: Lease;
}>;

export type ClaimOptions = Readonly<{
  queue: string;
  limit: number;
  leaseMs: number;
  /** `alone`: one that took its worker down and has one attempt left. */
  lane: 'together' | 'alone';
  /** Nothing before this is looked at. */
  after: LowWater | null;
  /** `text`: for whoever hands it on, so that no number in it is rounded. */
  payloadAs?: 'value' | 'text';
  /** Little is expected: it is to be quick rather than fit for a long queue. */
  isQuick?: boolean;
}>;

/** A place in a queue: where a claim stopped. */
export type LowWater = Readonly<{ sortAt: string; jobId: string }>;

export type Claimed = Readonly<{ jobs: readonly ClaimedJob[]; last: LowWater | null }>;

/** How a claimed job is written down. `isBusy`: whoever does the work has no time; it waits for its backoff at least. */
export type JobEnd = Readonly<{ job: Pick<ClaimedJob, 'jobId' | 'lease'>; startedAt: Date | null }> &
  (
    | Readonly<{ end: 'completed'; result: string | null }>
    | Readonly<{ end: 'failed'; error: string; isRetryable: boolean; retryAfterMs: number | null }>
    | Readonly<{ end: 'deferred'; delayMs: number; reason: string; isBusy?: boolean }>
    /** Claimed and never begun: it goes back to where it stood. */
    | Readonly<{ end: 'unstarted' }>
  );

/** How it stands in the database now; null where it was somebody else's by then. */
export type SettledJob = Readonly<{ jobId: string; status: Status | null }>;

export type JobStore = Readonly<{
  enqueue(job: NewJob): Promise<EnqueuedJob>;
  claim(options: ClaimOptions): Promise<Claimed>;
  /** Whether a job of the queue is due that is to run alone. */
  hasAlone(queue: string): Promise<boolean>;
  /** The payload of a job; null where it is not held any more. */
  readPayload(job: Pick<ClaimedJob, 'jobId' | 'lease'>): Promise<Readonly<{ payload: unknown }> | null>;
  /**
   * Ends attempts of one queue; while the database is away it is tried again, until the signal aborts. Of many, one that
   * could not be written is not in the answer: its lease runs out.
   */
  settle(queue: string, ends: readonly JobEnd[], until?: AbortSignal): Promise<readonly SettledJob[]>;
  /** Prolongs leases. `locked`: still ours, but somebody has the row, and the lease is as it was; all others are lost. */
  renew(
    jobs: readonly Pick<ClaimedJob, 'jobId' | 'lease'>[],
    leaseMs: number,
  ): Promise<Readonly<{ jobIds: readonly string[]; locked: readonly string[]; endsAtMs: number }>>;
  /** Keeps a word, as JSON text, on how far jobs are that are still held. */
  saveProgress(
    said: readonly Readonly<{ job: Pick<ClaimedJob, 'jobId' | 'lease'>; progress: string }>[],
  ): Promise<void>;
  /** Ends attempts whose lease is over; how many. */
  reap(): Promise<number>;
}>;
