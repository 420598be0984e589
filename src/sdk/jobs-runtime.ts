import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { systemClock } from '../kernel/clock.ts';
import { createLoop } from '../kernel/loop.ts';
import type { Service } from '../kernel/service.ts';
import { createSoloGate } from '../kernel/solo-gate.ts';
import { cancelledChannel } from '../jobs/infra/cancelled-channel.ts';
import { jobsChannel } from '../jobs/infra/jobs-channel.ts';
import { createPostgresJobStore } from '../jobs/infra/postgres-job-store.ts';
import { createPostgresQueueBook } from '../jobs/infra/postgres-queue-book.ts';
import { createReaper } from '../jobs/usecase/reap-lost.ts';
import type { QueueWorkerDeps } from '../jobs/usecase/work-queue.ts';
import type { Database } from '../platform/postgres/database.ts';
import { sql } from '../platform/postgres/sql.ts';
import { createWake } from '../platform/postgres/wake.ts';
import { reaped, type JobEvent } from './jobs-events.ts';

/** What the workers of a process need once. */
export type Shared = Readonly<{
  deps: Omit<QueueWorkerDeps, 'onEnd' | 'onError'>;
  leaseMs: number;
  pollMs: number;
  timeoutMsOf: (queue: string) => number;
  /** Null where nobody would tell. */
  waitForCancel: ((queue: string, signal: AbortSignal) => Promise<void>) | null;
  tell: (event: JobEvent) => void;
}>;

export type Runtime = Readonly<{
  shared: Shared;
  /** In the order in which they are started. */
  services: readonly Service[];
  /** Reads what holds for the queues. */
  refresh: () => Promise<void>;
  staleWrites: () => number;
}>;

const reapEveryMs = 1000;
const refreshEveryMs = 2000;
const cancelPollMs = 30_000;

export function createRuntime(
  db: Database,
  options: Readonly<{ listen: boolean }> & Pick<Shared, 'leaseMs' | 'pollMs' | 'tell'>,
): Runtime {
  const { listen, leaseMs, pollMs, tell } = options;
  const trouble = (what: string) => (error: unknown) => tell({ type: 'trouble', what, error });
  const owner = `${hostname()}:${process.pid}:${randomBytes(4).toString('hex')}`;
  let stale = 0;
  const onStale = (_slice: string, count: number): void => void (stale += count);
  const book = createPostgresQueueBook(db);
  const store = createPostgresJobStore(
    db,
    { db, clock: systemClock, owner, onStale },
    {
      book,
      onSettleRetry: trouble('the ends of jobs are written down again'),
      onReaped: (job) => tell(reaped(job)),
    },
  );
  const wake = createWake(db, { listen, worker: owner, onError: trouble('LISTEN is tried again') });
  const refreshing = createLoop({
    name: 'jobs book',
    everyMs: refreshEveryMs,
    run: () => book.refresh(),
    onError: trouble('what holds for the queues could not be read'),
  });
  const reap = createReaper({ store, clock: systemClock, ask: () => db.query(sql`SELECT 1`) });
  const reaper = createLoop({
    name: 'jobs reaper',
    everyMs: reapEveryMs,
    run: async () => void (await reap()),
    onError: trouble('attempts of lost workers could not be ended'),
  });
  return {
    shared: {
      deps: {
        store,
        clock: systemClock,
        solo: createSoloGate(),
        isLimited: (queue) => book.isLimited(queue),
        waitForWork: (queue, ms, signal) => wake.wait(jobsChannel(queue), ms, signal),
      },
      leaseMs,
      pollMs,
      timeoutMsOf: (queue) => book.settingsOf(queue).timeoutMs,
      waitForCancel: listen
        ? (queue, signal) => wake.wait(cancelledChannel(queue), cancelPollMs, signal)
        : null,
      tell,
    },
    services: [wake, refreshing, reaper],
    refresh: () => book.refresh(),
    staleWrites: () => stale,
  };
}
