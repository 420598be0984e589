import { claimJobs, type Claimed, type ClaimOptions } from '../../src/jobs/claim-jobs.ts';
import { defaultSettings, type QueueSettings } from '../../src/jobs/domain/queue-settings.ts';
import { enqueueJob, type EnqueuedJob, type NewJob } from '../../src/jobs/enqueue/enqueue-job.ts';
import type { WorkDeps } from '../../src/jobs/jobs-table.ts';
import { createQueues } from '../../src/jobs/queues.ts';
import { reapJobs, type ReapedJob } from '../../src/jobs/run/reap-jobs.ts';
import { settleJobs, type SettledJob, type Settlement } from '../../src/jobs/settle-jobs.ts';
import type { Database } from '../../src/platform/postgres/database.ts';
import type { Worker } from '../../src/platform/work/work.ts';
import { createTestWorker } from './worker.ts';

/** The statements of the jobs slice, bound to one database and one worker. */
export type TestJobStore = Readonly<{
  work: WorkDeps;
  enqueue(queue: string, more?: Partial<NewJob>): Promise<EnqueuedJob>;
  claim(options: Pick<ClaimOptions, 'queue'> & Partial<ClaimOptions>): Promise<Claimed>;
  settle(
    queue: string,
    settlements: readonly Settlement[],
    until?: AbortSignal,
  ): Promise<readonly SettledJob[]>;
  /** Ends attempts whose lease has expired; returns how many. */
  reap(): Promise<number>;
}>;

export type TestJobStoreOptions = Readonly<{
  worker?: Worker;
  queues?: WorkDeps['queues'];
  onReaped?: (job: ReapedJob) => void;
}>;

export function createTestJobStore(db: Database, options: TestJobStoreOptions = {}): TestJobStore {
  const { worker = createTestWorker(db), queues = createQueues(db), onReaped = () => {} } = options;
  const work: WorkDeps = { db, worker, queues, onSettleRetry: () => {} };
  return {
    work,
    enqueue: (queue, more = {}) => enqueueJob(db, newJob(queue, more)),
    claim: (claim) => claimJobs(work, { limit: 1, leaseMs: 60_000, ...claim }),
    settle: (queue, settlements, until) => settleJobs(work, queue, settlements, until),
    reap: () => reapJobs({ ...work, onReaped }),
  };
}

export function newJob(queue: string, more: Partial<NewJob> = {}): NewJob {
  return {
    queue,
    payload: '{}',
    dedupeKey: null,
    priority: 0,
    runAt: null,
    maxRetries: 3,
    trace: null,
    createdBy: null,
    ...more,
  };
}

/** The same settings for every queue. */
export function fixedQueues(settings: Partial<QueueSettings> = {}): WorkDeps['queues'] {
  return { settingsOf: () => ({ ...defaultSettings, ...settings }), isLimited: () => false };
}
