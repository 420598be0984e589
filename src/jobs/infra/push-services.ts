import type { Clock } from '../../kernel/clock.ts';
import { createLoop } from '../../kernel/loop.ts';
import type { Service } from '../../kernel/service.ts';
import type { SoloGate } from '../../kernel/solo-gate.ts';
import type { HealthCheck } from '../../platform/http/readiness.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { countReplicas } from '../../platform/postgres/replicas.ts';
import type { Wake } from '../../platform/postgres/wake.ts';
import type { Logger } from '../../platform/telemetry/logger.ts';
import type { JobStore } from '../usecase/ports.ts';
import { createPushPace } from '../usecase/push-pace.ts';
import { createQueueWorker, type QueueWorker } from '../usecase/work-queue.ts';
import { cancelledChannel } from './cancelled-channel.ts';
import { createHttpTarget, type HttpTarget, type TargetSettings } from './http-target.ts';
import type { JobMetrics } from './job-metrics.ts';
import { jobsChannel } from './jobs-channel.ts';
import { slowQueue } from './limited-claim.ts';
import type { QueueBook } from './postgres-queue-book.ts';
import { pushCheck, type WatchedQueue } from './push-check.ts';

export type PushDeps = Readonly<{
  db: Database;
  clock: Clock;
  wake: Wake;
  log: Logger;
  store: JobStore;
  book: QueueBook;
  /** Of all jobs that run in this process. */
  solo: SoloGate;
  counts: Pick<JobMetrics, 'ended'>;
}>;

export type PushedQueue = Readonly<{
  name: string;
  concurrency: number;
  timeoutMs: number;
  target: Pick<TargetSettings, 'url' | 'headers' | 'tls'> | null;
}>;

const leaseMs = 30_000;
const pollMs = 500;
/** A limited queue has room again without a word: with the next window of its rate. */
const pollLimitedMs = 200;
const checkCancelledMs = 5000;
const countReplicasEveryMs = 5000;

type TargetedQueue = PushedQueue & Readonly<{ target: NonNullable<PushedQueue['target']> }>;
type Pusher = WatchedQueue & Readonly<{ worker: QueueWorker; target: HttpTarget }>;

export type Pushers = Readonly<{ services: readonly Service[]; checks: readonly HealthCheck[] }>;

/**
 * One worker per queue with a target; its handler calls the target, and everything else is as in any worker. Nothing
 * where no queue has one.
 */
export function createPushers(deps: PushDeps, queues: readonly PushedQueue[]): Pushers {
  const { db, clock, wake, log } = deps;
  const targeted = queues.filter((queue): queue is TargetedQueue => queue.target !== null);
  if (targeted.length === 0) return { services: [], checks: [] };
  const countPushing = (): Promise<number> => countReplicas(db, { role: 'workers' });
  let replicas = 1;
  const counting = createLoop({
    name: 'jobs replicas',
    everyMs: countReplicasEveryMs,
    run: async () => void (replicas = Math.max(1, await countPushing())),
    onError: (error) => log.warn({ err: error }, 'the replicas could not be counted'),
  });
  const pushers = targeted.map((queue) => createPusher(deps, queue, () => replicas));
  return {
    services: [counting, together(pushers.map((pusher) => serve(pusher, wake)))],
    checks: [pushCheck({ clock, countPushing }, pushers)],
  };
}

function createPusher(deps: PushDeps, queue: TargetedQueue, replicas: () => number): Pusher {
  const { db, clock, wake, log, book } = deps;
  const { name, concurrency } = queue;
  const pace = createPushPace({
    clock,
    replicas,
    async slow(measuredRate) {
      if (!(await slowQueue(db, name, measuredRate))) return;
      log.info({ queue: name }, 'the target of a queue is busy: its jobs go more slowly for a while');
      await book.refresh();
    },
    onError: (error) => log.warn({ err: error, queue: name }, 'a queue could not be slowed down'),
  });
  const timeoutMs = (): number => book.settingsOf(name).timeoutMs;
  const target = createHttpTarget(
    { ...queue.target, connections: concurrency, connectTimeoutMs: queue.timeoutMs, timeoutMs },
    {
      pace,
      onMisconfigured: (why) => log.warn({ queue: name, error: why }, 'a job could not be pushed'),
    },
  );
  const worker = createQueueWorker(
    {
      store: { ...deps.store, claim: (options) => deps.store.claim({ ...options, payloadAs: 'text' }) },
      clock,
      solo: deps.solo,
      isLimited: book.isLimited,
      waitForWork: (_queue, ms, signal) =>
        wake.wait(jobsChannel(name), book.isLimited(name) ? Math.min(ms, pollLimitedMs) : ms, signal),
      onEnd: (end, status) => deps.counts.ended(name, end, status),
      onError: (what, error) => log.warn({ err: error, queue: name }, `${what} of pushed jobs failed`),
    },
    // A job that is claimed is called at once: one that waited here could not be called from elsewhere.
    { queue: name, handler: target.push, concurrency, maxPrefetch: 0, timeoutMs, leaseMs, pollMs },
  );
  return { name, concurrency, timeoutMs, worker, target };
}

/** All of them stop claiming at once, and none waits for what another one still has under way. */
function together(services: readonly Service[]): Service {
  return {
    name: 'jobs pushers',
    async start() {
      await Promise.all(services.map((service) => service.start()));
    },
    async stop(deadline) {
      await Promise.all(services.map((service) => service.stop(deadline)));
    },
  };
}

/** The worker, an ear for jobs that are cancelled while they run, and connections that close when all is over. */
function serve({ name, worker, target }: Pusher, wake: Wake): Service {
  const cancelled = createLoop({
    name: `jobs cancelled ${name}`,
    everyMs: 0,
    async run(stopping) {
      await wake.wait(cancelledChannel(name), checkCancelledMs, stopping);
      worker.checkLeases();
    },
    onError: () => {},
  });
  return {
    name: `jobs push ${name}`,
    async start() {
      await worker.start();
      await cancelled.start();
    },
    async stop(deadline) {
      await worker.stop(deadline);
      await cancelled.stop(deadline);
      await target.close();
    },
  };
}
