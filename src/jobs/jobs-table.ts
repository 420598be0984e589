import type { Backoff } from '../kernel/backoff.ts';
import type { Database } from '../platform/postgres/database.ts';
import { sql, type Sql } from '../platform/postgres/sql.ts';
import { notifyEvents } from '../platform/work/notify-events.ts';
import type { Worker, WorkTable } from '../platform/work/work.ts';
import type { Queues } from './queues.ts';

export const jobs: WorkTable = {
  slice: 'jobs',
  table: sql`jobs.job_queue`,
  key: sql`job_id`,
  keyArray: sql`uuid[]`,
};

/** What claiming, settling and reaping jobs need. */
export type WorkDeps = Readonly<{
  db: Database;
  worker: Worker;
  queues: Pick<Queues, 'settingsOf' | 'isLimited'>;
  onSettleRetry: (error: unknown) => void;
}>;

/** Prefix of the lease owner of jobs that a worker outside of this process has claimed over HTTP. */
export const pulledOwnerPrefix = 'pull:';

/** The subject has added the job `t`, or its worker has claimed it over HTTP and runs it now. */
export function isJobOf(subject: string): Sql {
  return sql`(t.created_by = ${subject} OR (
    t.status = 'running' AND t.claimed_by = ${subject} AND starts_with(t.lease_owner, ${pulledOwnerPrefix})))`;
}

/** The job `t` has one attempt left after it lost one with its worker: it runs alone, in case it crashed the worker. */
export const mustRunAlone: Sql = sql`t.lease_lost AND t.retry_count + 1 >= t.max_retries`;

/**
 * `backoffMs` of the kernel for the row `t`; `failures` includes this one. The jitter depends on the job and the count
 * only, so that it is the same wherever a statement repeats the expression.
 */
export function backoffOf(failures: Sql, { initialMs, maxMs, jitter }: Backoff): Sql {
  return sql`(
    LEAST(${initialMs}::float8 * 2 ^ LEAST(GREATEST(${failures}, 1) - 1, 52), ${maxMs}::float8)
    * (1 + ${jitter}::float8 * ((hashtextextended(t.job_id::text, ${failures}) & 1023) / 511.5 - 1)))`;
}

/** A CTE that adds a notification for each dead letter; `ended` has job_id, queue, status and error_message. */
export function notifyDead(ended: Sql): Sql {
  return notifyEvents(
    {
      slice: sql`'jobs'`,
      kind: sql`'dead_letter'`,
      subject: sql`queue`,
      itemId: sql`job_id`,
      summary: sql`error_message`,
    },
    { from: ended, where: sql`status = 'dead_letter'` },
  );
}

/**
 * A CTE that records each failed attempt; `ended` has job_id, retry_count, status, error_message, error_class, stack,
 * fingerprint, worker, lease_epoch, started_at and has_failed.
 */
export function recordFailures(ended: Sql): Sql {
  return sql`, recorded AS (
    INSERT INTO jobs.job_attempts
      (job_id, retry_count, status_to, error, error_class, stack, fingerprint, worker, lease_epoch, started_at)
    SELECT job_id, retry_count, status, COALESCE(error_message, ''), error_class, stack, fingerprint, worker,
           lease_epoch, started_at
    FROM ${ended} WHERE has_failed
  )`;
}
