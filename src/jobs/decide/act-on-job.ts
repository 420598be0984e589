import type { Act } from '../../kernel/audit/act.ts';
import { AppError } from '../../kernel/errors.ts';
import { cleanText } from '../../kernel/text.ts';
import { recordAct } from '../../platform/audit/record-act.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { Logger } from '../../platform/telemetry/logger.ts';
import { notify } from '../../platform/work/wake.ts';
import { cancelledChannel, jobsChannel } from '../channels.ts';
import { cancel, discard, requeue, type JobState, type Resolution, type Status } from '../domain/job.ts';
import { jobNotFound } from '../route-parts.ts';
import { unlessContended } from './unless-contended.ts';

export const actions = ['requeue', 'discard', 'cancel'] as const;
export type Action = (typeof actions)[number];

/** Who decided, and why; `act` is for the audit log. */
export type Decision = Readonly<{ actor: string; reason: string | null; act: Act }>;

export type DecideDeps = Readonly<{ db: Database; log: Pick<Logger, 'info'> }>;

/** Requeues, discards or cancels one job, and records who did it; returns the job's new status. */
export async function actOnJob(
  { db, log }: DecideDeps,
  action: Action,
  jobId: string,
  by: Decision,
): Promise<Status> {
  const acted = await unlessContended(() =>
    db.transaction(async (tx) => {
      await tx.query(sql`SET LOCAL lock_timeout = '2s'`);
      return actIn(tx, await lockJob(tx, jobId), { action, by });
    }),
  );
  if (acted === null)
    throw new AppError('SYS_JOBS_BUSY', 'conflict', 'the job is locked by another transaction; try again', {
      retryAfterMs: 1000,
    });
  const { actor, reason } = by;
  log.info({ action, job_id: jobId, ...acted, actor, reason }, `job ${participle[action]}`);
  return acted.status;
}

const participle: Readonly<Record<Action, string>> = {
  requeue: 'requeued',
  discard: 'discarded',
  cancel: 'cancelled',
};

type LockedJob = Readonly<{
  job_id: string;
  queue: string;
  status: Status;
  resolution: Resolution | null;
  retry_count: number;
  max_retries: number;
  deferrals: number;
  dedupe_key: string | null;
}>;

async function lockJob(tx: Queryable, jobId: string): Promise<LockedJob> {
  const [row] = await tx.query<LockedJob>(sql`
    SELECT job_id, queue, status, resolution, retry_count, max_retries, deferrals, dedupe_key
    FROM jobs.job_queue WHERE job_id = ${jobId} FOR UPDATE`);
  if (row === undefined) throw jobNotFound(jobId);
  return row;
}

const changes: Readonly<Record<Action, (job: JobState) => JobState | null>> = { requeue, discard, cancel };

async function actIn(
  tx: Queryable,
  job: LockedJob,
  { action, by }: Readonly<{ action: Action; by: Decision }>,
): Promise<Readonly<{ queue: string; status: Status }>> {
  const { status, resolution, retry_count: retryCount, max_retries: maxRetries, deferrals } = job;
  const changed = changes[action]({ status, resolution, retryCount, maxRetries, deferrals });
  if (changed === null)
    throw conflict(
      action,
      `status=${status}, resolution=${resolution ?? 'none'}, retry_count=${retryCount}/${maxRetries}`,
    );
  if (action === 'requeue') await requireFreeKey(tx, job);
  await write[action](tx, job, by);
  await tx.query(sql`
    INSERT INTO jobs.job_actions (job_id, action, status_from, status_to, actor, reason)
    VALUES (${job.job_id}, ${action}, ${status}, ${changed.status}, ${by.actor}, ${storedReason(by)})`);
  await recordAct(tx, by.act, {
    resource: `jobs/jobs/${job.job_id}`,
    names: { queues: [job.queue] },
    detail: { event: action, from: status, to: changed.status },
  });
  return { queue: job.queue, status: changed.status };
}

async function requireFreeKey(tx: Queryable, { queue, dedupe_key: key }: LockedJob): Promise<void> {
  if (key === null) return;
  const [holder] = await tx.query<{ job_id: string }>(sql`
    SELECT job_id FROM jobs.job_queue
    WHERE queue = ${queue} AND dedupe_key = ${key} AND status IN ('pending', 'running', 'failed')`);
  if (holder !== undefined)
    throw conflict('requeue', `its dedupe key is taken: job_id=${holder.job_id}`, [
      { field: 'dedupe_key', reason: 'taken', message: holder.job_id },
    ]);
}

type Write = (tx: Queryable, job: LockedJob, by: Decision) => Promise<void>;

const write: Readonly<Record<Action, Write>> = {
  /** A trigger sets the other columns, above all a new epoch. */
  async requeue(tx, { job_id: jobId, queue }) {
    await tx.query(sql`
      UPDATE jobs.job_queue SET status = 'pending', retry_count = 0
      WHERE job_id = ${jobId} AND status = 'dead_letter'`);
    await notify(tx, jobsChannel(queue));
  },

  async discard(tx, { job_id: jobId }) {
    await tx.query(sql`
      UPDATE jobs.job_queue SET resolution = 'discarded'
      WHERE job_id = ${jobId} AND status = 'dead_letter' AND resolution IS NULL`);
  },

  /** The new epoch makes the settle of a running worker stale; the notification lets it stop early. */
  async cancel(tx, { job_id: jobId, queue, status }, by) {
    const error = cleanText(`cancelled: ${storedReason(by) ?? `by ${by.actor}`}`, 4000);
    await tx.query(sql`
      UPDATE jobs.job_queue
      SET status = 'dead_letter', resolution = 'cancelled', error_message = ${error}, fingerprint = NULL,
          completed_at = clock_timestamp(), lease_owner = NULL, lease_until = NULL, lease_lost = false,
          lease_epoch = nextval('platform.lease_epochs')
      WHERE job_id = ${jobId} AND status IN ('pending', 'running', 'failed')`);
    if (status === 'running') await notify(tx, cancelledChannel(queue));
  },
};

export function storedReason({ reason }: Pick<Decision, 'reason'>): string | null {
  return reason === null ? null : cleanText(reason, 1000);
}

function conflict(action: Action, why: string, details: AppError['details'] = []): AppError {
  return new AppError('SYS_JOBS_CONFLICT', 'conflict', `job cannot be ${participle[action]}: ${why}`, {
    details,
  });
}
