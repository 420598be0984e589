import type { Clock } from '../../kernel/clock.ts';
import type { DeadFilter, Decision, JobActions, RequeuePreview, SkippedJob } from './acting-ports.ts';

/**
 * Requeues dead letters by a filter. What matches is looked up once and then taken in batches, each in a short
 * transaction that looks again: of two requests at once the second finds the first one's jobs gone, and a request
 * that is repeated after a lost answer goes on with what is left. Somebody who is at one of a batch's jobs, or at its
 * dedupe key, does not hold up the others: the batch is halved until that job is alone, and it is skipped.
 */
export type RequeueDeps = Readonly<{
  actions: Pick<JobActions, 'findDead' | 'requeueAll'>;
  clock: Clock;
  onRequeued: (done: Readonly<{ requeued: number; skipped: number; by: Decision }>) => void;
}>;

export type Requeued = Readonly<{
  requeued: number;
  skipped: number;
  /** Not all of them where there are very many. */
  skippedJobs: readonly SkippedJob[];
  /** More dead letters match than were requeued or skipped, or may match: not all could be looked at. */
  isMore: boolean;
}>;

const batchSize = 100;
const maxTold = 100;
const withinMs = 20_000;

export async function requeueJobs(
  { actions, clock, onRequeued }: RequeueDeps,
  asked: Readonly<{ filter: DeadFilter; limit: number; by: Decision }>,
): Promise<Requeued> {
  const { filter, limit, by } = asked;
  const endsAtMs = clock.monotonicMs() + withinMs;
  const found = await actions.findDead(filter, limit + 1);
  const jobIds = found.jobIds.slice(0, limit);
  const skippedJobs: SkippedJob[] = [];
  let requeued = 0;
  let skipped = 0;
  const skip = (jobs: readonly SkippedJob[]): void => {
    skipped += jobs.length;
    skippedJobs.push(...jobs.slice(0, Math.max(0, maxTold - skippedJobs.length)));
  };
  skip(found.keyTaken);
  let at = 0;
  for (let size = batchSize; at < jobIds.length && clock.monotonicMs() < endsAtMs;) {
    const batch = jobIds.slice(at, at + size);
    const done = await actions.requeueAll(batch, filter, by);
    if (done === null && batch.length > 1) {
      size = Math.ceil(batch.length / 2);
      continue;
    }
    requeued += done?.requeued ?? 0;
    skip(done?.skipped ?? batch.map((jobId) => ({ jobId, why: 'busy', holder: null })));
    at += batch.length;
    size = Math.min(batchSize, size * 2);
  }
  onRequeued({ requeued, skipped, by });
  return { requeued, skipped, skippedJobs, isMore: !found.isAll || found.jobIds.length > at };
}

export async function previewRequeue(
  { actions }: Readonly<{ actions: Pick<JobActions, 'preview'> }>,
  filter: DeadFilter,
): Promise<RequeuePreview> {
  return actions.preview(filter);
}
