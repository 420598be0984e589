import type { Resolution, Status } from '../domain/job.ts';

/** What looking at jobs and queues needs from outside. */

export type Job = Readonly<{
  jobId: string;
  queue: string;
  /** PostgreSQL's own JSON text; null in a list where it is too large to show. */
  payloadText: string | null;
  status: Status;
  retryCount: number;
  maxRetries: number;
  errorMessage: string | null;
  /** JSON text. In a list also null where it is too large to show. */
  resultText: string | null;
  dedupeKey: string | null;
  priority: number;
  runAt: Date;
  createdAt: Date;
  startedAt: Date | null;
  completedAt: Date | null;
  resolution: Resolution | null;
  deferrals: number;
  progressText: string | null;
  trace: string | null;
  leaseOwner: string | null;
  leaseUntil: Date | null;
  leaseEpoch: bigint;
}>;

/** An attempt that ended in failure. */
export type FailedAttempt = Readonly<{
  retryCount: number;
  statusTo: Status;
  error: string;
  worker: string | null;
  epoch: bigint;
  startedAt: Date | null;
  endedAt: Date;
}>;

/** What a person did to a job. */
export type PersonsAction = Readonly<{
  action: string;
  statusFrom: Status;
  statusTo: Status;
  actor: string;
  reason: string | null;
  at: Date;
}>;

export const resolutionFilters = ['unresolved', 'cancelled', 'discarded', 'any'] as const;

export type JobFilter = Readonly<{
  queue?: string | undefined;
  status?: Status | undefined;
  dedupeKey?: string | undefined;
  /** Created at or after it. */
  createdFrom?: Date | undefined;
  /** Created before it. */
  createdTo?: Date | undefined;
  /** `unresolved`: nobody has decided about it. */
  resolution?: (typeof resolutionFilters)[number] | undefined;
  /** How the error begins. */
  error?: string | undefined;
}>;

/** `after` is the id of the last job that was seen. */
export type ListWindow = Readonly<{ limit: number; offset: number; after: string | null }>;

export type Count = Readonly<{ total: number; isEstimate: boolean }>;

/**
 * Jobs of a list, newest first. Where no index leads to what is looked for, no more than a bounded number of jobs is
 * looked at: then `lookedTo` is the last of them, and older ones may match as well.
 */
export type Listed = Readonly<{ jobs: readonly Job[]; lookedTo: string | null; count: Count }>;

/** Dead letters of one queue whose errors begin alike. */
export type DeadGroup = Readonly<{
  queue: string;
  /** As much of the error as they share, at most; null where there is none. */
  error: string | null;
  count: number;
  /** When the newest of them died; null where nobody has written it down. */
  lastAt: Date | null;
}>;

/** `isPartial`: there are more dead letters than were counted, and these are the newest. */
export type DeadGroups = Readonly<{ groups: readonly DeadGroup[]; isPartial: boolean }>;

/** Who paused it, when and why. All null where somebody has done it in the database, and has not said. */
export type Pause = Readonly<{ at: Date | null; by: string | null; reason: string | null }>;

export type QueueReading = Readonly<{
  name: string;
  /** Whether a server's configuration names it. */
  isConfigured: boolean;
  pause: Pause | null;
  counts: Readonly<Record<Status, Count>>;
  /** Dead letters that nobody has decided about. */
  unresolved: Count;
  /** For how long the job has been due that has been longest; null where none is. */
  lagSeconds: number | null;
}>;

export type JobReader = Readonly<{
  find(jobId: string): Promise<Job | null>;
  /** Oldest first. */
  attempts(jobId: string): Promise<readonly FailedAttempt[]>;
  /** Oldest first. */
  actions(jobId: string): Promise<readonly PersonsAction[]>;
  list(filter: JobFilter, window: ListWindow): Promise<Listed>;
  /** The largest groups first. */
  deadGroups(filter: JobFilter): Promise<DeadGroups>;
  /** Every queue that is configured, that somebody has paused, or that has jobs. */
  queues(): Promise<readonly QueueReading[]>;
}>;

export type QueueStore = Readonly<{
  /** The pause that is in force then: where somebody paused it before, that one. */
  pause(queue: string, by: string, reason: string | null): Promise<Pause>;
  /** Whether it was paused. */
  resume(queue: string): Promise<boolean>;
}>;
