import type { Database } from '../../src/platform/postgres/database.ts';
import { sql } from '../../src/platform/postgres/sql.ts';

const mostTold = 40;

type Breach = Readonly<{ rule: string; job_id: string; facts: string }>;

/**
 * What must never be, whatever happened, asked of all jobs at once: a million of them are too many to look at one by
 * one. Jobs may still wait, but none may run.
 */
export async function findDeepQueueBreaches(db: Database): Promise<readonly string[]> {
  const breaches = await db.query<Breach>(sql`
    WITH handled AS MATERIALIZED (
      SELECT job_id, count(*) FILTER (WHERE what = 'started') AS started, count(*) FILTER (WHERE what = 'done') AS done
      FROM ledger GROUP BY job_id
    ), completed AS MATERIALIZED (
      SELECT job_id, count(*) AS times FROM completions GROUP BY job_id
    ), failed AS MATERIALIZED (
      SELECT job_id, count(*) AS times FROM jobs.job_attempts GROUP BY job_id
    ), books AS (
      SELECT job_id, j.job_id IS NOT NULL AND a.job_id IS NOT NULL AS is_known, j.status, j.retry_count, j.max_retries,
             j.resolution IS NOT NULL AS is_cancelled, COALESCE(h.started, 0) AS started, COALESCE(h.done, 0) AS done,
             COALESCE(c.times, 0) AS completions, COALESCE(f.times, 0) AS failures
      FROM accepted a
      FULL JOIN jobs.job_queue j USING (job_id)
      LEFT JOIN handled h USING (job_id) LEFT JOIN completed c USING (job_id) LEFT JOIN failed f USING (job_id)
    )
    SELECT rules.rule, books.job_id, to_jsonb(books)::text AS facts
    FROM books CROSS JOIN LATERAL (VALUES
      ('what was accepted is there, and nothing else', is_known),
      ('nothing runs', status <> 'running'),
      ('it became completed once, or never', completions = CASE WHEN status = 'completed' THEN 1 ELSE 0 END),
      ('what is completed was done', status <> 'completed' OR done >= 1),
      ('it stays within its budget', retry_count <= max_retries),
      ('it is dead when the budget is spent, or because a person said so',
        (status = 'dead_letter') = (retry_count = max_retries OR is_cancelled)),
      ('what waits for the first time has not failed', (status = 'pending') <= (retry_count = 0)),
      ('each failure is written down once', failures = retry_count),
      ('no attempt is free', started <= retry_count + CASE WHEN status = 'completed' THEN 1 ELSE 0 END)
    ) AS rules (rule, is_kept)
    WHERE is_kept IS NOT TRUE
    ORDER BY rules.rule, books.job_id
    LIMIT ${mostTold}`);
  return breaches.map(({ rule, facts }) => `${rule}: ${facts}`);
}
