import { AppError } from '../../kernel/errors.ts';
import type { Status } from '../domain/job.ts';
import type { HeldJob, Heartbeat, PulledEnd, PullStore } from './acting-ports.ts';
import type { JobEnd } from './ports.ts';

/**
 * What a worker outside of this process says about a job that it holds. Its epoch is its right to say so: a job that
 * was reaped, cancelled or claimed again since has another one, and the word of its former worker counts for nothing.
 */
export type FinishDeps = Readonly<{
  store: Pick<PullStore, 'find' | 'settle' | 'renew'>;
  /** `null`: what its worker said was stale. */
  onEnd: (queue: string, end: ToldEnd, status: Status | null) => void;
  onStale: (count: number) => void;
}>;

type ToldEnd = JobEnd & Readonly<{ job: Readonly<{ retryCount: number }> }>;

export type Held = Readonly<{ jobId: string; epoch: bigint }>;

/**
 * Said again because the answer was lost, it is answered as the first time and changes nothing more. Where completed
 * jobs go at once, nothing is left that tells of the first time: then it is stale.
 */
export async function finishPulledJob(deps: FinishDeps, held: Held, pulled: PulledEnd): Promise<Status> {
  const job = await deps.store.find(held.jobId);
  if (job === null) throw gone(deps, held.jobId);
  if (job.epoch === held.epoch && isEndOf(pulled, job.status)) return job.status;
  const end = endOf(job, pulled);
  const isHeld = job.epoch === held.epoch && job.status === 'running';
  const status = isHeld ? await deps.store.settle(job.queue, job.owner, end) : job.status;
  if (isHeld && status !== null && isEndOf(pulled, status)) {
    deps.onEnd(job.queue, end, status);
    return status;
  }
  // The store has counted what it found to be stale itself.
  if (status !== null) deps.onStale(1);
  deps.onEnd(job.queue, { ...end, startedAt: null }, null);
  throw stale(job.jobId, `status=${status ?? 'changed this moment'}`);
}

/** They were claimed, and whoever asked for them never got them. */
export async function giveJobsBack(
  { store }: Pick<FinishDeps, 'store'>,
  jobs: readonly Held[],
): Promise<void> {
  for (const { jobId, epoch } of jobs) {
    const job = await store.find(jobId);
    if (job?.epoch === epoch && job.status === 'running')
      await store.settle(job.queue, job.owner, { job: heldOf(job), startedAt: null, end: 'unstarted' });
  }
}

/** Prolongs the lease, and tells how far the job has come. */
export async function keepPulledJob(
  deps: FinishDeps,
  heartbeat: Heartbeat,
): Promise<Readonly<{ status: Status; leaseUntil: Date }>> {
  const renewed = await deps.store.renew(heartbeat);
  if (renewed !== null) return renewed;
  const job = await deps.store.find(heartbeat.jobId);
  if (job === null) throw gone(deps, heartbeat.jobId);
  if (job.epoch === heartbeat.epoch && job.status === 'running')
    throw stale(job.jobId, `its time is over, it was claimed at ${job.startedAt?.toISOString()}`);
  deps.onStale(1);
  throw stale(job.jobId, `status=${job.status}`);
}

function heldOf({ jobId, epoch, owner, retryCount }: HeldJob): ToldEnd['job'] {
  return { jobId, retryCount, lease: { owner: owner ?? '', epoch, endsAtMs: 0 } };
}

function endOf(held: HeldJob, pulled: PulledEnd): ToldEnd {
  const job = heldOf(held);
  const { startedAt } = held;
  return pulled.end === 'released'
    ? { job, startedAt, end: 'deferred', delayMs: 0, reason: 'given back by its worker too often' }
    : { job, startedAt, ...pulled };
}

/** Whether a job that ended so may stand so. Released once too often, it has failed. */
function isEndOf({ end }: PulledEnd, status: Status): boolean {
  switch (end) {
    case 'completed':
      return status === 'completed';
    case 'failed':
      return status === 'failed' || status === 'dead_letter';
    case 'released':
      return status === 'pending' || status === 'failed' || status === 'dead_letter';
  }
}

/** Says nothing of the epoch that would be right: it is somebody else's. */
function stale(jobId: string, why: string): AppError {
  const message = `job ${jobId} is not held with this epoch any more: ${why}`;
  return new AppError('SYS_JOBS_STALE', 'conflict', message);
}

/** Removed while it was held, or completed and removed, or never there: whoever speaks of it does not hold it. */
function gone({ onStale }: Pick<FinishDeps, 'onStale'>, jobId: string): AppError {
  onStale(1);
  return stale(jobId, 'there is no such job');
}

export function jobNotFound(jobId: string): AppError {
  return new AppError('SYS_JOBS_NOT_FOUND', 'not_found', `job not found: ${jobId}`);
}
