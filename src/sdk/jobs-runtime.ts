import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { systemClock } from '../kernel/clock.ts';
import { createLoop } from '../kernel/loop.ts';
import type { Service } from '../kernel/service.ts';
import { cancelledChannel, jobsChannel } from '../jobs/channels.ts';
import type { WorkDeps } from '../jobs/jobs-table.ts';
import { createQueues } from '../jobs/queues.ts';
import { createJobsReaper } from '../jobs/run/reap-jobs.ts';
import type { QueueWorkerDeps } from '../jobs/run/worker.ts';
import type { Database } from '../platform/postgres/database.ts';
import { createSoloGate } from '../platform/work/solo-gate.ts';
import { createWake } from '../platform/work/wake.ts';
import type { JobEvent } from './job-event.ts';
import { reaped } from './jobs-events.ts';

/** What all workers of a process share. */
export type Shared = Readonly<{
  deps: Omit<QueueWorkerDeps, 'onSettled' | 'onError'>;
  leaseMs: number;
  pollMs: number;
  timeoutMsOf: (queue: string) => number;
  /** Null without LISTEN. */
  waitForCancel: ((queue: string, signal: AbortSignal) => Promise<unknown>) | null;
  emit: (event: JobEvent) => void;
}>;

export type Runtime = Readonly<{
  shared: Shared;
  /** In the order in which they are started. */
  services: readonly Service[];
  /** Loads the queue settings. */
  refresh: () => Promise<void>;
  staleWrites: () => number;
}>;

/** How late a worker learns of changed queue settings. */
const refreshEveryMs = 2000;
/** In case a notification of a cancel was lost. */
const cancelPollMs = 30_000;

export function createRuntime(
  db: Database,
  options: Readonly<{ listen: boolean }> & Pick<Shared, 'leaseMs' | 'pollMs' | 'emit'>,
): Runtime {
  const { listen, leaseMs, pollMs, emit } = options;
  const trouble = (what: string) => (error: unknown) => emit({ type: 'trouble', what, error });
  const owner = `${hostname()}:${process.pid}:${randomBytes(4).toString('hex')}`;
  let stale = 0;
  const onStale = (_slice: string, count: number): void => void (stale += count);
  const queues = createQueues(db);
  const work: WorkDeps = {
    db,
    worker: { db, clock: systemClock, owner, onStale },
    queues,
    onSettleRetry: trouble('retrying settle'),
  };
  const wake = createWake(db, { listen, worker: owner, onError: trouble('retrying LISTEN') });
  const refreshing = createLoop({
    name: 'jobs queues',
    everyMs: refreshEveryMs,
    run: () => queues.refresh(),
    onError: trouble('failed to load queue settings'),
  });
  const reaper = createJobsReaper(
    { ...work, onReaped: (job) => emit(reaped(job)) },
    {
      shortestLeaseMs: leaseMs,
      onReaped: () => {},
      onError: trouble('failed to release jobs of lost workers'),
    },
  );
  return {
    shared: {
      deps: {
        ...work,
        solo: createSoloGate(),
        waitForWork: (queue, ms, signal) => wake.wait(jobsChannel(queue), ms, signal),
      },
      leaseMs,
      pollMs,
      timeoutMsOf: (queue) => queues.settingsOf(queue).timeoutMs,
      waitForCancel: listen
        ? (queue, signal) => wake.wait(cancelledChannel(queue), cancelPollMs, signal)
        : null,
      emit,
    },
    services: [wake, refreshing, reaper],
    refresh: () => queues.refresh(),
    staleWrites: () => stale,
  };
}
