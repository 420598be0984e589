import { messageOf } from '../../kernel/errors.ts';
import type { ClaimedJob } from '../claim-jobs.ts';
import { payloadTooLarge, type PayloadReading } from '../read-payload.ts';
import type { Settlement } from '../settle-jobs.ts';
import type { JobRun } from './job-run.ts';

/** `release` is called when the payload is no longer needed. */
type LoadedJob = Readonly<{ job: ClaimedJob; release?: (() => void) | undefined }>;

export type LoadDeps = Readonly<{
  read: (job: ClaimedJob) => Promise<PayloadReading | null>;
  mayStart: () => Promise<boolean>;
  onError: (error: unknown) => void;
}>;

/** The job with its payload, which is read now if it is long; or the job's settlement, if it cannot be started. */
export async function loadPayload(run: JobRun, deps: LoadDeps): Promise<LoadedJob | Settlement> {
  const { job } = run;
  if (!job.isPayloadApart) return { job };
  let release: (() => void) | undefined;
  try {
    const read = await deps.read(job);
    if (read !== null && 'isTooLarge' in read) return payloadTooLarge(job);
    release = read?.release;
    if (read !== null && (await deps.mayStart()))
      return { job: { ...run.job, payload: read.payload }, release };
    release?.();
    return { job, ran: null, outcome: 'unstarted' };
  } catch (error) {
    release?.();
    deps.onError(error);
    const reason = `failed to read the payload: ${messageOf(error)}`;
    return { job, ran: null, outcome: 'deferred', delayMs: 0, reason, isBusy: true };
  }
}
