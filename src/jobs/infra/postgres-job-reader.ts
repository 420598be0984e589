import type { Queryable } from '../../platform/postgres/database.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { FailedAttempt, JobReader, PersonsAction } from '../usecase/reading-ports.ts';
import { jobColumns, jobOf, wholeTexts, type JobRow } from './job-row.ts';
import { selectDeadGroups } from './select-dead-groups.ts';
import { selectJobs } from './select-jobs.ts';
import { selectQueues } from './select-queues.ts';

/** A job that people have requeued again and again has a long story; the newest part is told. */
const storyLimit = 1000;

export function createPostgresJobReader(db: Queryable): JobReader {
  return {
    async find(jobId) {
      const [row] = await db.query<JobRow>(sql`
        SELECT ${jobColumns}, ${wholeTexts} FROM jobs.job_queue t WHERE t.job_id = ${jobId}`);
      return row === undefined ? null : jobOf(row);
    },

    async attempts(jobId) {
      const rows = await db.query<FailedAttempt>(sql`
        SELECT retry_count AS "retryCount", status_to AS "statusTo", error, worker, lease_epoch AS epoch,
               started_at AS "startedAt", ended_at AS "endedAt"
        FROM jobs.job_attempts WHERE job_id = ${jobId} ORDER BY id DESC LIMIT ${storyLimit}`);
      return rows.toReversed();
    },

    async actions(jobId) {
      const rows = await db.query<PersonsAction>(sql`
        SELECT action, status_from AS "statusFrom", status_to AS "statusTo", actor, reason, at
        FROM jobs.job_actions WHERE job_id = ${jobId} ORDER BY id DESC LIMIT ${storyLimit}`);
      return rows.toReversed();
    },

    list: (filter, window) => selectJobs(db, filter, window),
    deadGroups: (filter) => selectDeadGroups(db, filter),
    queues: () => selectQueues(db),
  };
}
