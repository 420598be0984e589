-- Jobs that are run with bounded retries, and the dead letters that they may become.
CREATE SCHEMA jobs;

-- What values a job may have. As domains, which a connection keeps ready: CHECK constraints of the table would be read
-- from their stored form by every statement, and made adding a single job a third dearer.
CREATE DOMAIN jobs.queue_name AS TEXT CHECK (length(VALUE) BETWEEN 1 AND 100);
CREATE DOMAIN jobs.job_status AS TEXT
    CHECK (VALUE IN ('pending', 'running', 'completed', 'failed', 'dead_letter'));
CREATE DOMAIN jobs.job_resolution AS TEXT CHECK (VALUE IN ('cancelled', 'discarded'));
CREATE DOMAIN jobs.dedupe_key AS TEXT CHECK (length(VALUE) BETWEEN 1 AND 500);
CREATE DOMAIN jobs.priority AS INT CHECK (VALUE BETWEEN 0 AND 100);
CREATE DOMAIN jobs.retry_count AS INT CHECK (VALUE >= 0);
CREATE DOMAIN jobs.max_retries AS INT CHECK (VALUE >= 1);

CREATE TABLE jobs.job_queue (
    job_id        UUID        PRIMARY KEY DEFAULT platform.new_id(),
    queue         jobs.queue_name NOT NULL,
    payload       JSONB       NOT NULL,
    status        jobs.job_status NOT NULL DEFAULT 'pending',
    retry_count   jobs.retry_count NOT NULL DEFAULT 0,
    max_retries   jobs.max_retries NOT NULL DEFAULT 3,
    error_message TEXT,
    result        JSONB,
    -- At most one job of a queue that is not over has it.
    dedupe_key    jobs.dedupe_key,
    priority      jobs.priority NOT NULL DEFAULT 0,
    run_at        TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    -- Its place in the queue: when it is due, or, if it was due when it was written, that moment, moved forward by a
    -- minute per step of priority. Nobody gets ahead by naming a time that is over.
    sort_at       TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    created_at    TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    started_at    TIMESTAMPTZ,
    completed_at  TIMESTAMPTZ,
    resolution    jobs.job_resolution,
    -- How often it was snoozed, given back or told to come later; bounded, so that it does not go round for ever.
    deferrals     INT         NOT NULL DEFAULT 0,
    progress      JSONB,
    trace         TEXT,
    lease_owner   TEXT,
    lease_until   TIMESTAMPTZ,
    lease_epoch   BIGINT      NOT NULL DEFAULT 0,
    lease_lost    BOOLEAN     NOT NULL DEFAULT false
) WITH (
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_insert_scale_factor = 0.1,
    autovacuum_analyze_scale_factor = 0.05
);

-- Exactly the order of the claim.
CREATE INDEX idx_job_queue_claim
    ON jobs.job_queue (queue, sort_at, job_id) WHERE status IN ('pending', 'failed');
-- What lost its worker and waits: one that has to run alone is looked for every second, however many others wait.
CREATE INDEX idx_job_queue_alone
    ON jobs.job_queue (queue, sort_at, job_id) WHERE lease_lost AND status IN ('pending', 'failed');
-- For the reaper, for cancelling and for global limits; never more rows than are under way.
-- The epoch grows, so that new entries go to the end of their queue's.
CREATE INDEX idx_job_queue_running ON jobs.job_queue (queue, lease_epoch) WHERE status = 'running';
CREATE UNIQUE INDEX idx_job_queue_dedupe
    ON jobs.job_queue (queue, dedupe_key)
    WHERE dedupe_key IS NOT NULL AND status IN ('pending', 'running', 'failed');
-- What needs a person, and what a person has dealt with.
CREATE INDEX idx_job_queue_dead ON jobs.job_queue (queue, completed_at, job_id) WHERE status = 'dead_letter';
-- For lists, the newest first. A job that goes well is in none of them.
CREATE INDEX idx_job_queue_failed_id ON jobs.job_queue (job_id) WHERE status = 'failed';
CREATE INDEX idx_job_queue_dead_id ON jobs.job_queue (job_id) WHERE status = 'dead_letter';
CREATE INDEX idx_job_queue_unresolved
    ON jobs.job_queue (job_id) WHERE status = 'dead_letter' AND resolution IS NULL;
CREATE INDEX idx_job_queue_unresolved_of_queue
    ON jobs.job_queue (queue, job_id) WHERE status = 'dead_letter' AND resolution IS NULL;

-- Failures only: a success is in the job's own row.
CREATE TABLE jobs.job_attempts (
    job_id      UUID        NOT NULL,
    id          BIGINT      GENERATED ALWAYS AS IDENTITY,
    retry_count INT         NOT NULL,
    status_to   TEXT        NOT NULL,
    error       TEXT        NOT NULL,
    worker      TEXT,
    lease_epoch BIGINT      NOT NULL,
    started_at  TIMESTAMPTZ,
    ended_at    TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (job_id, id)
);

-- What people did to a job.
CREATE TABLE jobs.job_actions (
    job_id      UUID        NOT NULL,
    id          BIGINT      GENERATED ALWAYS AS IDENTITY,
    action      TEXT        NOT NULL,
    status_from TEXT        NOT NULL,
    status_to   TEXT        NOT NULL,
    actor       TEXT        NOT NULL,
    reason      TEXT,
    at          TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (job_id, id)
);

-- What holds for a queue, in one place for every process that works on it: what the configuration of the server says
-- (the columns down to `is_configured`), and what happens to it. A queue needs no row: without one the defaults hold.
CREATE TABLE jobs.queues (
    queue              TEXT        PRIMARY KEY CHECK (length(queue) BETWEEN 1 AND 100),
    max_retries        INT         NOT NULL DEFAULT 3 CHECK (max_retries >= 1),
    timeout_ms         INT         NOT NULL DEFAULT 60000 CHECK (timeout_ms >= 1),
    backoff_initial_ms INT         NOT NULL DEFAULT 2000 CHECK (backoff_initial_ms >= 1),
    backoff_max_ms     INT         NOT NULL DEFAULT 300000,
    backoff_jitter     FLOAT8      NOT NULL DEFAULT 0.1 CHECK (backoff_jitter BETWEEN 0 AND 1),
    max_deferrals      INT         NOT NULL DEFAULT 100 CHECK (max_deferrals >= 0),
    keep_completed     BOOLEAN     NOT NULL DEFAULT true,
    -- Over all processes together; NULL where there is no limit.
    max_running        INT         CHECK (max_running >= 1),
    rate_count         INT         CHECK (rate_count >= 1),
    rate_window_ms     INT         CHECK (rate_window_ms >= 1),
    is_configured      BOOLEAN     NOT NULL DEFAULT false,
    paused             BOOLEAN     NOT NULL DEFAULT false,
    paused_at          TIMESTAMPTZ,
    paused_by          TEXT,
    paused_reason      TEXT,
    -- The window of the rate limit that jobs were last let out in, and how many.
    window_at          TIMESTAMPTZ,
    window_taken       INT         NOT NULL DEFAULT 0,
    -- How fast a target that said it was busy is called now.
    throttle           JSONB,
    updated_at         TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    CHECK ((rate_count IS NULL) = (rate_window_ms IS NULL))
);
-- So that it is known to be small: a table that was never looked at is taken for a larger one, and read by ways that
-- take longer to prepare than to go.
ANALYZE jobs.queues;

-- One row per time that a schedule came, written together with its job. The first one of a schedule has no job: it
-- says from when on the schedule is known. A schedule that is changed is a new one.
CREATE TABLE jobs.cron_ticks (
    name     TEXT        NOT NULL,
    tick_at  TIMESTAMPTZ NOT NULL,
    -- With its time zone: `0 3 * * * Europe/Berlin`.
    schedule TEXT        NOT NULL,
    job_id   UUID,
    fired_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (name, tick_at)
);

-- Adds a job in the caller's transaction. With a dedupe key that a job of the queue has that is not over, that job
-- is the answer; a running job is never waited for. It has no search_path of its own, which would be set and put back
-- with every job: all tables are written with their schema.
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
    v_told   TEXT;
BEGIN
    LOOP
        -- Whoever waits for it is told by the same statement: a second one would cost a tenth of all this.
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
                  CASE WHEN v_run_at <= v_now AND EXISTS (
                      SELECT 1 FROM platform.idle_workers
                      WHERE channel = 'jobs:' || p_queue AND idle_until > clock_timestamp())
                  THEN pg_notify('redrive', 'jobs:' || p_queue)::text END
        INTO job_id, status, is_duplicate, v_told;
        EXIT WHEN FOUND;
        SELECT j.job_id, j.status, true INTO job_id, status, is_duplicate
        FROM jobs.job_queue j
        WHERE j.queue = p_queue AND j.dedupe_key = p_dedupe_key AND j.status IN ('pending', 'running', 'failed');
        -- Not found: it has ended this moment, and the key is free.
        EXIT WHEN FOUND;
    END LOOP;
END $$;

-- Many at once: one element per job, with payload and, if wanted, job_id, dedupe_key, priority, run_at, max_retries
-- and trace. One row per element, in their order. Those without a key are inserted without looking for another; of
-- the keys, those that are taken are looked at one by one.
CREATE FUNCTION jobs.enqueue_many(p_queue TEXT, p_jobs JSONB)
RETURNS TABLE (job_id UUID, status TEXT, is_duplicate BOOLEAN) LANGUAGE plpgsql
  SET search_path = pg_catalog
AS $$
#variable_conflict use_column
DECLARE
    v_now         TIMESTAMPTZ := clock_timestamp();
    v_max_retries INT := COALESCE((SELECT q.max_retries FROM jobs.queues q WHERE q.queue = p_queue), 3);
    v_is_due      BOOLEAN := false;
    v_job         RECORD;
BEGIN
    FOR v_job IN
        WITH given AS MATERIALIZED (
            SELECT j.position, COALESCE(j.job_id, platform.new_id()) AS job_id,
                   COALESCE(j.payload, 'null') AS payload, j.dedupe_key,
                   COALESCE(j.priority, 0) AS priority, COALESCE(j.run_at, v_now) AS run_at,
                   COALESCE(j.max_retries, v_max_retries) AS max_retries, j.trace
            FROM ROWS FROM (jsonb_to_recordset(p_jobs) AS (
                job_id UUID, payload JSONB, dedupe_key TEXT, priority INT, run_at TIMESTAMPTZ, max_retries INT,
                trace TEXT)) WITH ORDINALITY
                AS j (job_id, payload, dedupe_key, priority, run_at, max_retries, trace, position)
        ), placed AS (
            SELECT *, CASE WHEN run_at <= v_now THEN v_now - priority * interval '1 minute' ELSE run_at END AS sort_at
            FROM given
        ), free AS (
            INSERT INTO jobs.job_queue (job_id, queue, payload, max_retries, priority, run_at, sort_at, created_at, trace)
            SELECT job_id, p_queue, payload, max_retries, priority, run_at, sort_at, v_now, trace
            FROM placed WHERE dedupe_key IS NULL
        ), keyed AS (
            -- In one order of the keys for everybody, so that two of these cannot wait for each other.
            INSERT INTO jobs.job_queue AS q
                (job_id, queue, payload, max_retries, dedupe_key, priority, run_at, sort_at, created_at, trace)
            SELECT job_id, p_queue, payload, max_retries, dedupe_key, priority, run_at, sort_at, v_now, trace
            FROM placed WHERE dedupe_key IS NOT NULL ORDER BY dedupe_key, position
            ON CONFLICT (queue, dedupe_key)
                WHERE dedupe_key IS NOT NULL AND status IN ('pending', 'running', 'failed')
                DO NOTHING
            RETURNING q.job_id
        )
        SELECT given.*, given.dedupe_key IS NULL OR keyed.job_id IS NOT NULL AS is_new
        FROM given LEFT JOIN keyed ON keyed.job_id = given.job_id
        ORDER BY given.position
    LOOP
        IF v_job.is_new THEN
            job_id := v_job.job_id;
            status := 'pending';
            is_duplicate := false;
            v_is_due := v_is_due OR v_job.run_at <= v_now;
        ELSE
            SELECT e.job_id, e.status, e.is_duplicate INTO job_id, status, is_duplicate
            FROM jobs.enqueue(p_queue, v_job.payload, v_job.dedupe_key, v_job.priority, v_job.run_at,
                              v_job.max_retries, v_job.trace) e;
        END IF;
        RETURN NEXT;
    END LOOP;
    PERFORM pg_notify('redrive', 'jobs:' || p_queue)
    WHERE v_is_due AND EXISTS (
        SELECT 1 FROM platform.idle_workers
        WHERE channel = 'jobs:' || p_queue AND idle_until > clock_timestamp());
END $$;

-- The seed's way to run a job again is to write its status and its count by hand. That stays possible: what else
-- belongs to it is completed here, and whoever ran it last is shut out by a new epoch. Our own statements that make a
-- running job pending again end its lease themselves.
CREATE FUNCTION jobs.complete_requeue() RETURNS trigger LANGUAGE plpgsql
  SET search_path = pg_catalog
AS $$
BEGIN
    NEW.completed_at := NULL;
    NEW.resolution := NULL;
    NEW.deferrals := 0;
    NEW.run_at := clock_timestamp();
    NEW.sort_at := NEW.run_at - NEW.priority * interval '1 minute';
    NEW.lease_owner := NULL;
    NEW.lease_until := NULL;
    NEW.lease_lost := false;
    NEW.lease_epoch := nextval('platform.lease_epochs');
    RETURN NEW;
END $$;
CREATE TRIGGER job_queue_requeue BEFORE UPDATE ON jobs.job_queue
    FOR EACH ROW WHEN (NEW.status = 'pending' AND (OLD.status IN ('failed', 'completed', 'dead_letter')
                                                   OR OLD.status = 'running' AND NEW.lease_owner IS NOT NULL))
    EXECUTE FUNCTION jobs.complete_requeue();

-- The seed's table by its name, for its queries.
CREATE VIEW jobs.summarize_job_queue AS
    SELECT job_id, payload ->> 'article_id' AS article_id, status, retry_count, max_retries, error_message, payload,
           result, run_at, created_at, started_at, completed_at
    FROM jobs.job_queue WHERE queue = 'summarize';
