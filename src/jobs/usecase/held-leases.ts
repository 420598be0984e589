import type { Clock } from '../../kernel/clock.ts';
import { remainingMs } from '../../kernel/lease.ts';
import type { JobSlots } from './job-slots.ts';
import type { ClaimedJob, JobStore } from './ports.ts';

/** The leases of the jobs that run or wait in a worker, and what is told of them while they run. */
export type HeldLeases = Readonly<{
  /** Those that a third is over of; all of them after `checkAll`. A job that is lost is told to stop. */
  renewDue(): Promise<void>;
  renew(jobs: readonly ClaimedJob[]): Promise<void>;
  checkAll(): void;
  /** Now and then, how far handlers have said that they are. */
  saveProgress(): Promise<void>;
}>;

export type HeldLeasesDeps = Readonly<{
  store: Pick<JobStore, 'renew' | 'saveProgress'>;
  clock: Clock;
  slots: Pick<JobSlots, 'runs' | 'waiting'>;
  leaseMs: number;
}>;

const saveProgressEveryMs = 1000;

export function createHeldLeases({ store, clock, slots, leaseMs }: HeldLeasesDeps): HeldLeases {
  let isCheckDue = false;
  let saveProgressAtMs = 0;

  const renew = async (due: readonly ClaimedJob[]): Promise<void> => {
    const { jobIds, locked, endsAtMs } = await store.renew(due, leaseMs);
    const kept = new Set(jobIds);
    const isLost = ({ jobId }: ClaimedJob): boolean => !kept.has(jobId) && !locked.includes(jobId);
    const asked = new Map(due.map(({ jobId, lease }) => [jobId, lease.epoch]));
    const isAsked = ({ jobId, lease }: ClaimedJob): boolean => asked.get(jobId) === lease.epoch;
    for (const run of slots.runs().filter(({ job }) => isAsked(job))) {
      if (kept.has(run.job.jobId)) run.renew(endsAtMs);
      else if (isLost(run.job))
        run.giveUp(new Error('the job was taken away: cancelled, or its lease was lost'));
    }
    slots.waiting.update((job) => {
      if (!isAsked(job)) return job;
      if (isLost(job)) return null;
      return kept.has(job.jobId) ? { ...job, lease: { ...job.lease, endsAtMs } } : job;
    });
  };

  return {
    renew,
    checkAll: () => void (isCheckDue = true),
    async renewDue() {
      const isAll = isCheckDue;
      isCheckDue = false;
      const held = [...slots.waiting.all(), ...slots.runs().map(({ job }) => job)];
      const due = isAll ? held : held.filter(({ lease }) => remainingMs(lease, clock) < (leaseMs * 2) / 3);
      if (due.length > 0) await renew(due);
    },
    async saveProgress() {
      const now = clock.monotonicMs();
      if (now < saveProgressAtMs) return;
      saveProgressAtMs = now + saveProgressEveryMs;
      const said = slots.runs().flatMap((run) => {
        const progress = run.takeProgress();
        return progress === null ? [] : [{ job: run.job, progress }];
      });
      if (said.length > 0) await store.saveProgress(said);
    },
  };
}
