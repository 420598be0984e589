import type { Database } from '../../../src/platform/postgres/database.ts';
import { sql } from '../../../src/platform/postgres/sql.ts';

/** Jobs of one queue in one status, as the workers would have left them. */
export type StoredJobs = Readonly<{
  queue: string;
  count: number;
  status?: 'pending' | 'running' | 'completed' | 'failed' | 'dead_letter';
  /** Of the failures; also their cause. */
  error?: string;
  stack?: string;
  dedupeKey?: string;
  /** As JSON, so that numbers keep their digits. */
  payload?: string;
}>;

/** Stores them, the oldest first; returns their ids. */
export async function storeJobs(db: Database, stored: StoredJobs): Promise<readonly string[]> {
  const { queue, count, status = 'pending', error = null, stack = null, dedupeKey = null } = stored;
  const { payload = `{"article": 1}` } = stored;
  const fingerprint =
    error === null ? null : `v2:${Buffer.from(error).toString('hex').padEnd(32, '0').slice(0, 32)}`;
  const failures = status === 'dead_letter' ? 3 : status === 'failed' ? 1 : 0;
  const isOver = status === 'completed' || status === 'dead_letter';
  const rows = await db.query<{ job_id: string }>(sql`
    INSERT INTO jobs.job_queue
      (queue, payload, status, retry_count, error_message, fingerprint, dedupe_key, created_at, run_at, sort_at,
       started_at, completed_at, lease_owner, lease_until, lease_epoch)
    SELECT ${queue}, ${payload}::jsonb, ${status}, ${failures}::int, ${error}, ${fingerprint},
           CASE WHEN ${dedupeKey}::text IS NULL THEN NULL ELSE ${dedupeKey} || '-' || n END,
           now() - interval '5 minutes' + n * interval '1 ms',
           now() + ${failures === 1 ? 3600 : 0}::int * interval '1 second',
           now() + ${failures === 1 ? 3600 : 0}::int * interval '1 second',
           CASE WHEN ${status} <> 'pending' THEN now() - interval '4 minutes' END,
           CASE WHEN ${isOver} THEN now() - interval '3 minutes' END,
           CASE WHEN ${status} = 'running' THEN 'pull:worker-1' END,
           CASE WHEN ${status} = 'running' THEN now() + interval '1 hour' END,
           nextval('platform.lease_epochs')
    FROM generate_series(1, ${count}::int) AS n
    RETURNING job_id`);
  const ids = rows.map(({ job_id: id }) => id);
  if (error !== null)
    await db.query(sql`
      INSERT INTO jobs.job_attempts
        (job_id, retry_count, status_to, error, error_class, stack, fingerprint, worker, lease_epoch, started_at, ended_at)
      SELECT id, ${failures}::int, ${status}, ${error}, 'TimeoutError', ${stack}, ${fingerprint}, 'worker-1', 1,
             now() - interval '4 minutes', now() - interval '3 minutes'
      FROM unnest(${ids}::uuid[]) AS id`);
  return ids;
}
