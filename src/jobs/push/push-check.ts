import type { Clock } from '../../kernel/clock.ts';
import { formatTimestamp } from '../../kernel/timestamp.ts';
import type { HealthCheck } from '../../platform/http/readiness.ts';

/** A queue with a target, and its worker in this process. */
export type WatchedQueue = Readonly<{
  name: string;
  concurrency: number;
  timeoutMs: () => number;
  worker: Readonly<{
    /** When it last looked for jobs, on the monotonic clock; null while it is not started. */
    lookedAtMs(): number | null;
    /** Calls that did not stop when they were told to. */
    zombies(): number;
  }>;
  /** Since when its target is down; null while it is not. */
  downSince: () => Date | null;
}>;

export type PushCheckDeps = Readonly<{
  clock: Clock;
  /** Number of processes with the role workers. */
  countPushing: () => Promise<number>;
}>;

/**
 * A solo job makes all queues of its process wait, at most for the longest timeout, and an idle worker claims twice a
 * minute. This much later, one is stuck.
 */
const stuckAfterMs = 60_000;
const maxListed = 5;

/**
 * Degraded if no process pushes the jobs of queues with a target, or if a target is down. A target that fails some jobs
 * does not degrade: its dead letters show that.
 */
export function pushCheck(
  { clock, countPushing }: PushCheckDeps,
  queues: readonly WatchedQueue[],
): HealthCheck {
  const problemsOf = (queue: WatchedQueue, longestMs: number): readonly string[] => {
    const { name, concurrency, worker } = queue;
    const downSince = queue.downSince();
    if (downSince !== null)
      return [`the target of ${name} has not answered since ${formatTimestamp(downSince)}`];
    if (worker.zombies() >= concurrency)
      return [`${name} takes no jobs: ${worker.zombies()} calls did not stop when they were told to`];
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
          message: 'queues have a target, but no process with the role workers is running',
        };
      const longestMs = Math.max(...queues.map(({ timeoutMs }) => timeoutMs())) + stuckAfterMs;
      const problems = queues.flatMap((queue) => problemsOf(queue, longestMs));
      return problems.length === 0
        ? { status: 'healthy' }
        : { status: 'degraded', message: problems.slice(0, maxListed).join('; ') };
    },
  };
}
