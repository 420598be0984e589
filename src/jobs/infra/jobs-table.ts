import type { Backoff } from '../../kernel/backoff.ts';
import { sql, type Sql } from '../../platform/postgres/sql.ts';
import type { WorkTable } from '../../platform/postgres/work.ts';

export const jobs: WorkTable = {
  slice: 'jobs',
  table: sql`jobs.job_queue`,
  key: sql`job_id`,
  keyArray: sql`uuid[]`,
};

/**
 * As `backoffMs` in the kernel, of the row `t`; `failures` is the count with this one. The jitter is drawn from the
 * job and the count, so that it is the same wherever a statement needs it.
 */
export function backoffOf(failures: Sql, { initialMs, maxMs, jitter }: Backoff): Sql {
  return sql`(
    LEAST(${initialMs}::float8 * 2 ^ LEAST(GREATEST(${failures}, 1) - 1, 52), ${maxMs}::float8)
    * (1 + ${jitter}::float8 * ((hashtextextended(t.job_id::text, ${failures}) & 1023) / 511.5 - 1)))`;
}

/** One row for a person per job that has died by itself; `ended` has job_id, queue, status and error_message. */
export function tellOfDead(ended: Sql): Sql {
  return sql`, told AS (
    INSERT INTO platform.notify_events (slice, kind, subject, item_id, summary)
    SELECT 'jobs', 'dead_letter', queue, job_id::text, left(COALESCE(error_message, ''), 500)
    FROM ${ended} WHERE status = 'dead_letter'
  )`;
}

/** One line per failure; `ended` has job_id, retry_count, status, error_message, worker, lease_epoch, started_at. */
export function noteFailures(ended: Sql): Sql {
  return sql`, noted AS (
    INSERT INTO jobs.job_attempts (job_id, retry_count, status_to, error, worker, lease_epoch, started_at)
    SELECT job_id, retry_count, status, COALESCE(error_message, ''), worker, lease_epoch, started_at
    FROM ${ended} WHERE has_failed
  )`;
}
