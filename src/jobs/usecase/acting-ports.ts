import type { Resolution, Status } from '../domain/job.ts';
import type { JobEnd } from './ports.ts';

/** What workers outside of this process and people do to jobs, as the use cases ask for it. */

export type PullRequest = Readonly<{
  queue: string;
  /** Who will hold the leases. */
  owner: string;
  limit: number;
  leaseMs: number;
  /** Whether to look for a job that must run alone as well. */
  looksForAlone: boolean;
}>;

export type Pulled = Readonly<{
  jobs: readonly PulledJob[];
  /** One that must run alone is due, or was until this moment. */
  aloneIsDue: boolean;
}>;

export type PulledJob = Readonly<{
  jobId: string;
  queue: string;
  /** JSON text. */
  payload: string;
  retryCount: number;
  maxRetries: number;
  epoch: bigint;
  leaseUntil: Date;
}>;

/** A job as the one sees it who says that it holds it. */
export type HeldJob = Readonly<{
  jobId: string;
  queue: string;
  status: Status;
  epoch: bigint;
  owner: string | null;
  startedAt: Date | null;
  retryCount: number;
}>;

/** How its worker says that a pulled job ended. */
export type PulledEnd =
  | Readonly<{ end: 'completed'; result: string | null }>
  | Readonly<{ end: 'failed'; error: string; isRetryable: boolean; retryAfterMs: number | null }>
  | Readonly<{ end: 'released' }>;

export type Heartbeat = Readonly<{
  jobId: string;
  epoch: bigint;
  leaseMs: number;
  /** JSON text; null leaves what was told before. */
  progress: string | null;
}>;

/** `null`: it is not held with this epoch any more, or its time is over. */
export type Renewed = Readonly<{ status: Status; leaseUntil: Date }> | null;

export type PullStore = Readonly<{
  /** A job that must run alone comes by itself, to a worker that has no other, which gets none beside it. */
  claim(asked: PullRequest): Promise<Pulled>;
  find(jobId: string): Promise<HeldJob | null>;
  /** How it stands then; null where it was somebody else's by then, which has been counted. */
  settle(queue: string, owner: string | null, end: JobEnd): Promise<Status | null>;
  /** Never beyond the end of the job's time. */
  renew(heartbeat: Heartbeat): Promise<Renewed>;
}>;

export const actions = ['requeue', 'discard', 'cancel'] as const;
export type Action = (typeof actions)[number];

export type Decision = Readonly<{ actor: string; reason: string | null }>;

export type ActionOutcome =
  | Readonly<{ outcome: 'done'; queue: string; status: Status }>
  | Readonly<{ outcome: 'not_found' }>
  | Readonly<{
      outcome: 'wrong_status';
      status: Status;
      resolution: Resolution | null;
      retryCount: number;
      maxRetries: number;
    }>
  /** A job that is not over has its dedupe key. */
  | Readonly<{ outcome: 'key_taken'; dedupeKey: string; holder: string }>
  /** Somebody else is at this job, or takes its key, this moment. */
  | Readonly<{ outcome: 'busy' }>;

/** Dead letters. Those that a person has dealt with are among them only where they are named. */
export type DeadFilter = Readonly<{
  queue: string | null;
  /** How the error begins. */
  error: string | null;
  createdFrom: Date | null;
  createdTo: Date | null;
  jobIds: readonly string[] | null;
}>;

export type SkippedJob = Readonly<{
  jobId: string;
  why: 'key_taken' | 'busy';
  /** Who has the key. */
  holder: string | null;
}>;

/** The oldest first. Those whose dedupe key is taken stand apart, or they would be in the way for ever. */
export type FoundDead = Readonly<{
  jobIds: readonly string[];
  keyTaken: readonly SkippedJob[];
  /** All were looked at; otherwise there may be more. */
  isAll: boolean;
}>;

export type RequeuedBatch = Readonly<{ requeued: number; skipped: readonly SkippedJob[] }>;

export type DeadSample = Readonly<{
  jobId: string;
  queue: string;
  error: string | null;
  createdAt: Date;
  completedAt: Date | null;
}>;

export type RequeuePreview = Readonly<{
  /** How many there are; not counted beyond a bound, nor for longer than a while. */
  matched: number;
  isMore: boolean;
  /** Of these, those whose dedupe key a job has that is not over. */
  keyTaken: number;
  sample: readonly DeadSample[];
}>;

export type JobActions = Readonly<{
  act(action: Action, jobId: string, by: Decision): Promise<ActionOutcome>;
  findDead(filter: DeadFilter, limit: number): Promise<FoundDead>;
  /**
   * Requeues those of them that still match, in one transaction: all that can be, or, where somebody else is at one
   * of them, none: null.
   */
  requeueAll(jobIds: readonly string[], filter: DeadFilter, by: Decision): Promise<RequeuedBatch | null>;
  preview(filter: DeadFilter): Promise<RequeuePreview>;
}>;
