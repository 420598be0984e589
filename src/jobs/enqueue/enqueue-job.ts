import { AppError, codeOf } from '../../kernel/errors.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { prepared, sql, type Sql } from '../../platform/postgres/sql.ts';
import type { Status } from '../domain/job.ts';

export type NewJob = Readonly<{
  queue: string;
  /** JSON text. */
  payload: string;
  dedupeKey: string | null;
  priority: number;
  runAt: Date | null;
  maxRetries: number | null;
  trace: string | null;
  /** The caller; null without authentication. */
  createdBy: string | null;
}>;

export type EnqueuedJob = Readonly<{ jobId: string; status: Status; isDuplicate: boolean }>;

type EnqueuedRow = Readonly<{ job_id: string; status: Status; is_duplicate: boolean }>;

/** If an unfinished job of the queue has the same dedupe key, returns that job and adds none. */
export async function enqueueJob(db: Database, job: NewJob): Promise<EnqueuedJob> {
  const statement = sql`
    SELECT job_id, status, is_duplicate
    FROM jobs.enqueue(${job.queue}, ${job.payload}::jsonb, ${job.dedupeKey}, ${job.priority}, ${job.runAt},
                      ${job.maxRetries}, ${job.trace}, ${job.createdBy})`;
  const [row] =
    job.dedupeKey === null
      ? await db.query<EnqueuedRow>(prepared(statement))
      : await enqueueWithKey(db, statement);
  if (row === undefined) throw new Error('jobs.enqueue returned no row');
  return { jobId: row.job_id, status: row.status, isDuplicate: row.is_duplicate };
}

/** An open transaction that adds the same key would block the insert until the statement times out. */
async function enqueueWithKey(db: Database, statement: Sql): Promise<readonly EnqueuedRow[]> {
  try {
    return await db.transaction(async (tx) => {
      await tx.query(sql`SET LOCAL lock_timeout = '500ms'`);
      return tx.query<EnqueuedRow>(statement);
    });
  } catch (error) {
    if (codeOf(error) !== '55P03') throw error;
    const message = 'another open transaction adds a job with this dedupe key; try again';
    throw new AppError('SYS_JOBS_BUSY', 'conflict', message, { cause: error, retryAfterMs: 1000 });
  }
}

/** Whether the job was added by another caller than this one. Nobody is known to have added a job from SQL. */
export async function isOfAnother(db: Database, jobId: string, createdBy: string | null): Promise<boolean> {
  const rows = await db.query(sql`
    SELECT 1 FROM jobs.job_queue WHERE job_id = ${jobId} AND created_by IS NOT NULL
      AND created_by IS DISTINCT FROM ${createdBy}`);
  return rows.length > 0;
}

/** The answer would show a job that the caller may not see. */
export function dedupeKeyTaken(): AppError {
  const message = 'an unfinished job that another caller added has this dedupe key';
  return new AppError('SYS_JOBS_DEDUPE_KEY_TAKEN', 'conflict', message, {
    details: [{ field: 'dedupe_key', reason: 'taken', message: 'is used by another caller' }],
  });
}
