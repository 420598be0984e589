import type { PullRequest } from '../usecase/acting-ports.ts';
import type { ClaimedJob, JobStore } from '../usecase/ports.ts';

/** So much of payloads goes into one answer; one job does in any case. */
const answerBytes = 16 * 1024 * 1024;
/** What is sent to us over HTTP is rarely longer than a mebibyte: so many are claimed before their size is known. */
const firstClaim = 16;

/**
 * As many as were asked for, or as have room in an answer: first a few, then as many more as should fit by the size of
 * those. What does not fit after all goes back to where it stood, in the same transaction: nobody sees that it was
 * claimed.
 */
export async function claimWhatFits(
  store: Pick<JobStore, 'claim' | 'settle'>,
  { queue, leaseMs, limit }: Pick<PullRequest, 'queue' | 'leaseMs' | 'limit'>,
): Promise<readonly ClaimedJob[]> {
  const claimed: ClaimedJob[] = [];
  let bytes = 0;
  for (let more = Math.min(limit, firstClaim); more > 0;) {
    const { jobs } = await store.claim({
      queue,
      leaseMs,
      limit: more,
      lane: 'together',
      after: null,
      payloadAs: 'text',
    });
    claimed.push(...jobs);
    bytes += jobs.reduce((sum, job) => sum + bytesOf(job), 0);
    const fitting = Math.floor((answerBytes - bytes) / (bytes / claimed.length));
    more = jobs.length < more ? 0 : Math.min(limit - claimed.length, fitting);
  }
  const fitting = countFitting(claimed);
  const unfit = claimed.slice(fitting);
  if (unfit.length > 0)
    await store.settle(
      queue,
      unfit.map((job) => ({ job, startedAt: null, end: 'unstarted' })),
    );
  return claimed.slice(0, fitting);
}

function countFitting(jobs: readonly ClaimedJob[]): number {
  let bytes = 0;
  const end = jobs.findIndex((job, index) => {
    bytes += bytesOf(job);
    return index > 0 && bytes > answerBytes;
  });
  return end === -1 ? jobs.length : end;
}

/** Its payload was asked for as text. */
export function payloadOf({ payload }: ClaimedJob): string {
  return payload as string;
}

function bytesOf(job: ClaimedJob): number {
  return Buffer.byteLength(payloadOf(job));
}
