import { isPaused, startPermitMs } from '../queue-pause.ts';
import { settleJobs, type Settlement } from '../settle-jobs.ts';
import {
  claimPulled,
  maxPulledBytes,
  type PullDeps,
  type PulledJob,
  type PullRequest,
} from './claim-pulled.ts';

export type PullerDeps = PullDeps &
  Readonly<{ waitForWork: (queue: string, ms: number, signal: AbortSignal) => Promise<unknown> }>;

/** Claims jobs for a worker outside of this process; if none is due, the request may wait for one. */
export type Puller = Readonly<{
  /**
   * `reserve` reserves memory for the response before jobs are claimed, and throws if there is none; 0 releases it.
   */
  pull(
    request: PullRequest,
    waiting: Readonly<{ waitMs: number; signal: AbortSignal; reserve: (bytes: number) => Promise<void> }>,
  ): Promise<readonly PulledJob[]>;
}>;

/** A waiting request is woken when a job is added; it polls for jobs that become due. */
const pollMs = 1000;
/** Looking for a solo job reads all due jobs. */
const lookForSoloEveryMs = 1000;
/** Clients choose the queue names, so the memory for them is limited. */
const maxRemembered = 1000;

/** How long jobs that their worker will not get are tried to be given back. */
const giveBackWithinMs = 5000;

export function createPuller(deps: PullerDeps): Puller {
  const { clock } = deps.worker;
  const lookForSoloAtMs = new Map<string, number>();

  const claim = async (request: PullRequest): Promise<readonly PulledJob[]> => {
    const { queue } = request;
    const begin = clock.monotonicMs();
    const looksForSolo = begin >= (lookForSoloAtMs.get(queue) ?? 0);
    const { jobs, isSoloDue } = await claimPulled(deps, { ...request, looksForSolo });
    // If one solo job is due there are probably more: the others that ran when the worker crashed.
    if (looksForSolo && !isSoloDue) {
      if (lookForSoloAtMs.size >= maxRemembered) lookForSoloAtMs.clear();
      lookForSoloAtMs.set(queue, clock.monotonicMs() + lookForSoloEveryMs);
    }
    // The claim has checked the pause. If it took long, the queue may have been paused since.
    const isFresh = clock.monotonicMs() - begin < startPermitMs;
    if (jobs.length === 0 || isFresh || !(await isPaused(deps.db, queue))) return jobs;
    await giveBack(deps, request, jobs);
    return [];
  };

  return {
    async pull(request, { waitMs, signal, reserve }) {
      const endsAtMs = clock.monotonicMs() + waitMs;
      for (;;) {
        await reserve(maxPulledBytes);
        const jobs = await claim(request);
        if (jobs.length === 0) await reserve(0);
        const leftMs = endsAtMs - clock.monotonicMs();
        if (jobs.length > 0 || leftMs <= 0 || signal.aborted) return jobs;
        await deps.waitForWork(request.queue, Math.min(leftMs, pollMs), signal);
        if (signal.aborted) return [];
      }
    },
  };
}

/** Returns claimed jobs, unstarted, that their worker will not get. */
export async function giveBack(
  deps: PullDeps,
  { queue, owner }: PullRequest,
  jobs: readonly PulledJob[],
): Promise<void> {
  const settlements = jobs.map(({ jobId, epoch }): Settlement => {
    const lease = { owner, epoch, endsAtMs: 0 };
    return { job: { jobId, lease }, ran: null, outcome: 'unstarted' };
  });
  const as = { ...deps, worker: { ...deps.worker, owner } };
  await settleJobs(as, queue, settlements, AbortSignal.timeout(giveBackWithinMs));
}
