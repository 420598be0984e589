import { sleep, type Clock } from '../../kernel/clock.ts';
import type { Service } from '../../kernel/service.ts';
import type { Worker } from './work.ts';

/**
 * Releases rows whose lease has expired, once a second while rows are leased; the slice passes the statement (see
 * `reap` in work.ts), which ends the attempt as its state machine says. Start-up recovery is the same code: every
 * process runs a reaper, and the rows of a crashed process are released when their leases expire.
 */
export type ReaperOptions = Readonly<{
  slice: string;
  worker: Pick<Worker, 'watch'>;
  clock: Clock;
  /** Whether any row is leased. */
  hasLeased: () => Promise<boolean>;
  /** Returns how many rows were released. */
  reap: () => Promise<number>;
  everyMs?: number;
  /** While nothing is leased, the reaper looks less often: twice in the shortest lease that is usual. */
  shortestLeaseMs: number;
  /** While the database was unavailable nobody could renew a lease or settle: all get this much time first. */
  afterOutage?: Readonly<{
    graceMs: number;
    /** Rejects while the database is unavailable. */
    ping: () => Promise<unknown>;
  }>;
  onReaped: (count: number) => void;
  onError: (error: unknown) => void;
}>;

/** A round that found nothing and took t is repeated after this many times t: dead index entries make it expensive. */
const restFactor = 20;
/** An expired lease waits no longer than this for its reaper. */
const maxIdleMs = 10_000;

export function createReaper(options: ReaperOptions): Service {
  const stopping = new AbortController();
  const { slice, everyMs = 1000 } = options;
  const { watch } = options.worker;
  const round = createReaperRound({
    ...options,
    onReaped(count) {
      watch?.reaped(slice, count);
      options.onReaped(count);
    },
  });
  const beat = (): void => watch?.beat(slice, 'reaper');
  const beatAfter = (restMs: number): number => {
    beat();
    return restMs;
  };
  let running = Promise.resolve();

  const run = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      const restMs = await round().then(beatAfter, (error: unknown) => {
        options.onError(error);
        return 0;
      });
      await sleep(Math.max(everyMs, restMs), stopping.signal);
    }
  };

  return {
    name: `${slice} reaper`,
    async start() {
      beat();
      running = run();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

/** One round; resolves with the time to rest before the next one. */
export function createReaperRound({
  clock,
  hasLeased,
  reap,
  shortestLeaseMs,
  afterOutage,
  onReaped,
}: Omit<ReaperOptions, 'slice' | 'worker' | 'everyMs' | 'onError'>): () => Promise<number> {
  const graceMs = afterOutage?.graceMs ?? 0;
  const idleMs = Math.min(maxIdleMs, shortestLeaseMs / 2);
  let wasUnavailable = false;
  let wasIdle = false;
  // The database may have been unavailable until now.
  let reapFromMs = clock.monotonicMs() + graceMs;

  const reapOnce = async (): Promise<number> => {
    const begin = clock.monotonicMs();
    const isIdle = !(await hasLeased());
    if (!isIdle && wasIdle && graceMs > 0) {
      // The database may have been unavailable during the pause, unnoticed.
      reapFromMs = clock.monotonicMs() + graceMs;
    }
    wasIdle = isIdle;
    if (isIdle) return Math.max(idleMs, restFactor * (clock.monotonicMs() - begin));
    if (clock.monotonicMs() < reapFromMs) return 0;
    const count = await reap();
    if (count === 0) return restFactor * (clock.monotonicMs() - begin);
    onReaped(count);
    return 0;
  };

  return async () => {
    try {
      if (wasUnavailable && afterOutage !== undefined) {
        await afterOutage.ping();
        reapFromMs = clock.monotonicMs() + graceMs;
      }
      wasUnavailable = false;
      return clock.monotonicMs() < reapFromMs ? 0 : await reapOnce();
    } catch (error) {
      wasUnavailable = true;
      throw error;
    }
  };
}
