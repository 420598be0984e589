import { codeOf } from '../../kernel/errors.ts';
import { cleanText } from '../../kernel/text.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import { notify } from '../../platform/postgres/wake.ts';
import { cancel, discard, requeue, type JobState, type Resolution, type Status } from '../domain/job.ts';
import type { Action, ActionOutcome, Decision, JobActions } from '../usecase/acting-ports.ts';
import { cancelledChannel } from './cancelled-channel.ts';
import { jobsChannel } from './jobs-channel.ts';
import { findDead, previewDead, requeueAll } from './requeue-dead.ts';

const patience = sql`SET LOCAL lock_timeout = '2s'`;
/** Of many, the one that holds them up is looked for by trying again with fewer. */
const littlePatience = sql`SET LOCAL lock_timeout = '500ms'`;

export function createPostgresJobActions(db: Database): JobActions {
  return {
    async act(action, jobId, by) {
      const outcome = await unlessContended(() =>
        db.transaction(async (tx) => {
          await tx.query(patience);
          const found = await lockJob(tx, jobId);
          return found === null ? ({ outcome: 'not_found' } as const) : decide(tx, found, { action, by });
        }),
      );
      return outcome ?? { outcome: 'busy' };
    },

    findDead: (filter, limit) => findDead(db, filter, limit),

    requeueAll: (jobIds, filter, by) =>
      unlessContended(() =>
        db.transaction(async (tx) => {
          await tx.query(jobIds.length === 1 ? patience : littlePatience);
          return requeueAll(tx, { jobIds, filter, by });
        }),
      ),

    preview: (filter) => previewDead(db, filter),
  };
}

/**
 * Somebody else holds one of the rows, or has just taken a dedupe key that was free a moment ago, or takes it in a
 * transaction that is not over: null, and nothing was changed.
 */
async function unlessContended<T>(work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    if (contended.has(codeOf(error) ?? '')) return null;
    throw error;
  }
}

const contended: ReadonlySet<string> = new Set(['55P03', '40P01', '23505']);

type FoundJob = Readonly<{
  job_id: string;
  queue: string;
  status: Status;
  resolution: Resolution | null;
  retry_count: number;
  max_retries: number;
  deferrals: number;
  dedupe_key: string | null;
}>;

async function lockJob(tx: Queryable, jobId: string): Promise<FoundJob | null> {
  const [row] = await tx.query<FoundJob>(sql`
    SELECT job_id, queue, status, resolution, retry_count, max_retries, deferrals, dedupe_key
    FROM jobs.job_queue WHERE job_id = ${jobId} FOR UPDATE`);
  return row ?? null;
}

type Asked = Readonly<{ action: Action; by: Decision }>;

const changes: Readonly<Record<Action, (job: JobState) => JobState | null>> = { requeue, discard, cancel };

async function decide(tx: Queryable, found: FoundJob, asked: Asked): Promise<ActionOutcome> {
  const { status, resolution, retry_count: retryCount, max_retries: maxRetries, deferrals } = found;
  const changed = changes[asked.action]({ status, resolution, retryCount, maxRetries, deferrals });
  if (changed === null) return { outcome: 'wrong_status', status, resolution, retryCount, maxRetries };
  const holder = asked.action === 'requeue' ? await holderOfKey(tx, found) : null;
  if (holder !== null) return { outcome: 'key_taken', dedupeKey: found.dedupe_key ?? '', holder };
  await write[asked.action](tx, found, asked.by);
  await tx.query(sql`
    INSERT INTO jobs.job_actions (job_id, action, status_from, status_to, actor, reason)
    VALUES (${found.job_id}, ${asked.action}, ${status}, ${changed.status}, ${asked.by.actor},
            ${reasonOf(asked.by)})`);
  return { outcome: 'done', queue: found.queue, status: changed.status };
}

async function holderOfKey(tx: Queryable, { queue, dedupe_key: key }: FoundJob): Promise<string | null> {
  if (key === null) return null;
  const [row] = await tx.query<{ job_id: string }>(sql`
    SELECT job_id FROM jobs.job_queue
    WHERE queue = ${queue} AND dedupe_key = ${key} AND status IN ('pending', 'running', 'failed')`);
  return row?.job_id ?? null;
}

type Write = (tx: Queryable, job: FoundJob, by: Decision) => Promise<void>;

const write: Readonly<Record<Action, Write>> = {
  /** What else belongs to it, a new epoch above all, the table's trigger completes. */
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

  /** The new epoch shuts out whoever runs it, who is told at once if they listen. */
  async cancel(tx, { job_id: jobId, queue, status }, by) {
    const error = cleanText(`cancelled: ${reasonOf(by) ?? `by ${by.actor}`}`, 4000);
    await tx.query(sql`
      UPDATE jobs.job_queue
      SET status = 'dead_letter', resolution = 'cancelled', error_message = ${error},
          completed_at = clock_timestamp(), lease_owner = NULL, lease_until = NULL, lease_lost = false,
          lease_epoch = nextval('platform.lease_epochs')
      WHERE job_id = ${jobId} AND status IN ('pending', 'running', 'failed')`);
    if (status === 'running') await notify(tx, cancelledChannel(queue));
  },
};

function reasonOf({ reason }: Decision): string | null {
  return reason === null ? null : cleanText(reason, 1000);
}
