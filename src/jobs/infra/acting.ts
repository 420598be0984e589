import type { Clock } from '../../kernel/clock.ts';
import type { Database } from '../../platform/postgres/database.ts';
import type { Wake } from '../../platform/postgres/wake.ts';
import type { Worker } from '../../platform/postgres/work.ts';
import type { Logger } from '../../platform/telemetry/logger.ts';
import type { JobActions } from '../usecase/acting-ports.ts';
import type { ActDeps } from '../usecase/act-on-job.ts';
import type { FinishDeps } from '../usecase/finish-pulled-job.ts';
import { createPuller, type Puller } from '../usecase/pull-jobs.ts';
import type { RequeueDeps } from '../usecase/requeue-jobs.ts';
import type { JobMetrics } from './job-metrics.ts';
import { jobs } from './jobs-table.ts';
import { createPostgresJobActions } from './postgres-job-actions.ts';
import { createPostgresPullStore, type PullStoreDeps } from './postgres-pull-store.ts';
import { createWaitForJobs } from './wait-for-jobs.ts';

export type ActingDeps = Readonly<{
  db: Database;
  worker: Worker;
  wake: Pick<Wake, 'wait'>;
  clock: Clock;
  log: Logger;
  counts: Pick<JobMetrics, 'ended'>;
  book: PullStoreDeps['book'];
  jobStoreFor: PullStoreDeps['jobStoreFor'];
}>;

/** What the routes for workers in other processes and for people's decisions work with. */
export type Acting = ActDeps &
  RequeueDeps &
  Readonly<{ puller: Puller; finish: FinishDeps; actions: JobActions }>;

export function createActing(deps: ActingDeps): Acting {
  const { db, worker, clock, log } = deps;
  const store = createPostgresPullStore(deps);
  return {
    clock,
    puller: createPuller({ store, clock, waitForWork: createWaitForJobs(deps.wake) }),
    finish: {
      store,
      onEnd: (queue, end, status) => deps.counts.ended(queue, end, status),
      onStale: (count) => worker.onStale(jobs.slice, count),
    },
    actions: createPostgresJobActions(db),
    onActed({ action, jobId, queue, status, by: { actor, reason } }) {
      const facts = { action, job_id: jobId, queue, status, actor, reason };
      if (action === 'cancel') log.info(facts, 'a job was cancelled and is a dead_letter now');
      else log.info(facts, 'a person has decided about a dead_letter');
    },
    onRequeued: ({ requeued, skipped, by: { actor, reason } }) =>
      log.info({ requeued, skipped, actor, reason }, 'dead letters were requeued'),
  };
}
