import type { Clock } from '../../kernel/clock.ts';
import type { HealthCheck } from '../../platform/http/readiness.ts';
import type { QueueWorker } from '../usecase/work-queue.ts';

/** A queue whose jobs are pushed to a target, as its worker in this process sees it. */
export type WatchedQueue = Readonly<{
  name: string;
  concurrency: number;
  timeoutMs: () => number;
  worker: Pick<QueueWorker, 'lookedAtMs' | 'zombies'>;
}>;

export type PushCheckDeps = Readonly<{
  clock: Clock;
  /** How many processes there are that push. */
  countPushing: () => Promise<number>;
}>;

/**
 * A job that runs alone keeps all queues of its process waiting, for as long as any of them gives a job; beyond that
 * and so much more, something is stuck.
 */
const stuckAfterMs = 30_000;
const maxTold = 5;

/**
 * Jobs that nobody pushes although their queue has a target degrade: the rest of the process works, and the jobs wait.
 * A target that fails does not: that is told by its dead letters.
 */
export function pushCheck(
  { clock, countPushing }: PushCheckDeps,
  queues: readonly WatchedQueue[],
): HealthCheck {
  const troubleOf = ({ name, concurrency, worker }: WatchedQueue, longestMs: number): readonly string[] => {
    if (worker.zombies() >= concurrency)
      return [`${name} takes no job: ${worker.zombies()} calls did not end when they were told to`];
    const idleMs = clock.monotonicMs() - (worker.lookedAtMs() ?? Infinity);
    return idleMs > longestMs ? [`${name} has not looked for jobs for ${Math.round(idleMs / 1000)} s`] : [];
  };
  return {
    name: 'jobs_push',
    critical: false,
    async check() {
      const isPushing = queues.some(({ worker }) => worker.lookedAtMs() !== null);
      if (!isPushing && (await countPushing()) === 0)
        return {
          status: 'degraded',
          message: 'queues have a target, and no process with the role workers is there to push their jobs',
        };
      const longestMs = Math.max(...queues.map(({ timeoutMs }) => timeoutMs())) + stuckAfterMs;
      const troubles = queues.flatMap((queue) => troubleOf(queue, longestMs));
      return troubles.length === 0
        ? { status: 'healthy' }
        : { status: 'degraded', message: troubles.slice(0, maxTold).join('; ') };
    },
  };
}
