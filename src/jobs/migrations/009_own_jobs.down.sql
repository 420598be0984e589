DROP FUNCTION jobs.enqueue(TEXT, JSONB, TEXT, INT, TIMESTAMPTZ, INT, TEXT, TEXT);

CREATE FUNCTION jobs.enqueue(
    p_queue       TEXT,
    p_payload     JSONB,
    p_dedupe_key  TEXT        DEFAULT NULL,
    p_priority    INT         DEFAULT 0,
    p_run_at      TIMESTAMPTZ DEFAULT NULL,
    p_max_retries INT         DEFAULT NULL,
    p_trace       TEXT        DEFAULT NULL,
    OUT job_id       UUID,
    OUT status       TEXT,
    OUT is_duplicate BOOLEAN
) LANGUAGE plpgsql
AS $$
#variable_conflict use_column
DECLARE
    v_now    TIMESTAMPTZ := clock_timestamp();
    v_run_at TIMESTAMPTZ := COALESCE(p_run_at, v_now);
    v_notified TEXT;
BEGIN
    LOOP
        -- The same statement notifies idle workers: a second one would cost a tenth of the function's CPU time.
        INSERT INTO jobs.job_queue AS j
            (queue, payload, max_retries, dedupe_key, priority, run_at, sort_at, created_at, trace)
        VALUES (p_queue, p_payload,
                COALESCE(p_max_retries, (SELECT q.max_retries FROM jobs.queues q WHERE q.queue = p_queue), 3),
                p_dedupe_key, p_priority, v_run_at,
                CASE WHEN v_run_at <= v_now THEN v_now - p_priority * interval '1 minute' ELSE v_run_at END,
                v_now, p_trace)
        ON CONFLICT (queue, dedupe_key)
            WHERE dedupe_key IS NOT NULL AND status IN ('pending', 'running', 'failed')
            DO NOTHING
        RETURNING j.job_id, j.status, false,
                  CASE WHEN v_run_at <= v_now + interval '10 seconds' AND EXISTS (
                      SELECT 1 FROM platform.idle_workers
                      WHERE channel = 'jobs:' || p_queue AND idle_until > clock_timestamp())
                  THEN pg_notify('redrive', 'jobs:' || p_queue)::text END
        INTO job_id, status, is_duplicate, v_notified;
        EXIT WHEN FOUND;
        SELECT j.job_id, j.status, true INTO job_id, status, is_duplicate
        FROM jobs.job_queue j
        WHERE j.queue = p_queue AND j.dedupe_key = p_dedupe_key AND j.status IN ('pending', 'running', 'failed');
        -- Not found: the other job has just ended, and the key is free.
        EXIT WHEN FOUND;
    END LOOP;
END $$;

ALTER TABLE jobs.job_queue DROP COLUMN created_by, DROP COLUMN claimed_by;
