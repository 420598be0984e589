import { AppError } from '../../kernel/errors.ts';
import type { Status } from '../domain/job.ts';
import type { Action, ActionOutcome, Decision, JobActions } from './acting-ports.ts';
import { jobNotFound } from './finish-pulled-job.ts';

/** What a person decides about one job: that it goes again, that nothing follows, or that it is called off. */
export type ActDeps = Readonly<{
  actions: Pick<JobActions, 'act'>;
  onActed: (
    acted: Readonly<{ action: Action; jobId: string; queue: string; status: Status; by: Decision }>,
  ) => void;
}>;

export async function actOnJob(deps: ActDeps, action: Action, jobId: string, by: Decision): Promise<Status> {
  const done = await deps.actions.act(action, jobId, by);
  if (done.outcome !== 'done') throw refusal(action, jobId, done);
  deps.onActed({ action, jobId, queue: done.queue, status: done.status, by });
  return done.status;
}

const participle: Readonly<Record<Action, string>> = {
  requeue: 'requeued',
  discard: 'discarded',
  cancel: 'cancelled',
};

function refusal(
  action: Action,
  jobId: string,
  refused: Exclude<ActionOutcome, { outcome: 'done' }>,
): AppError {
  switch (refused.outcome) {
    case 'not_found':
      return jobNotFound(jobId);
    case 'wrong_status': {
      const { status, resolution, retryCount, maxRetries } = refused;
      const facts = `status=${status}, resolution=${resolution ?? 'none'}, retry_count=${retryCount}/${maxRetries}`;
      return conflict(action, facts);
    }
    case 'key_taken':
      return conflict(
        action,
        `its dedupe key is taken: dedupe_key=${refused.dedupeKey}, job_id=${refused.holder}`,
        [{ field: 'dedupe_key', reason: 'taken', message: refused.holder }],
      );
    case 'busy':
      return new AppError('SYS_JOBS_BUSY', 'conflict', 'somebody else is at this job; try again', {
        retryAfterMs: 1000,
      });
  }
}

function conflict(action: Action, why: string, details: AppError['details'] = []): AppError {
  return new AppError('SYS_JOBS_CONFLICT', 'conflict', `job cannot be ${participle[action]}: ${why}`, {
    details,
  });
}
