-- One row per attempt, written before its call and closed in place: after a crash it is known what may have been
-- called. The status is missing exactly while the attempt is open.
ALTER TABLE saga.saga_step_logs
    ALTER COLUMN status DROP NOT NULL,
    ADD COLUMN attempt   INT     NOT NULL DEFAULT 1 CHECK (attempt >= 1),
    ADD COLUMN answer    TEXT    CHECK (answer IN ('done', 'refused', 'defect', 'unknown', 'unserved', 'not_done')),
    -- Certainly nothing of the request has left.
    ADD COLUMN is_unsent BOOLEAN NOT NULL DEFAULT false,
    -- Its service does not bear a second call after this one.
    ADD COLUMN is_last   BOOLEAN NOT NULL DEFAULT false,
    ADD COLUMN actor     TEXT,
    ADD COLUMN reason    TEXT;

UPDATE saga.saga_step_logs l SET attempt = numbered.attempt
FROM (SELECT id, row_number() OVER (PARTITION BY saga_id, step_index, action ORDER BY started_at, id) AS attempt
      FROM saga.saga_step_logs) AS numbered
WHERE l.id = numbered.id AND numbered.attempt > 1;
-- What had no end was still running, whatever its status says; of a saga that has ended, its end is known.
UPDATE saga.saga_step_logs l SET status = 'TIMEOUT', error_message = COALESCE(l.error_message, 'worker lost')
FROM saga.saga_states t
WHERE t.id = l.saga_id AND l.completed_at IS NULL AND t.status IN ('STARTED', 'RUNNING', 'COMPENSATING');
UPDATE saga.saga_step_logs SET completed_at = started_at WHERE completed_at IS NULL;
-- Whether what has failed was refused, or may have happened all the same, the system before ours did not write down.
-- It is in doubt, and not called again by itself.
UPDATE saga.saga_step_logs
SET answer = CASE status WHEN 'SUCCESS' THEN 'done' WHEN 'SKIPPED' THEN NULL ELSE 'unknown' END,
    is_unsent = status = 'SKIPPED', is_last = status IN ('FAILED', 'TIMEOUT');

ALTER TABLE saga.saga_step_logs
    ALTER COLUMN attempt DROP DEFAULT,
    ADD CONSTRAINT chk_saga_step_logs_open CHECK ((status IS NULL) = (completed_at IS NULL)),
    ADD CONSTRAINT uq_saga_step_logs_attempt UNIQUE (saga_id, step_index, action, attempt);

-- The unique constraint serves what this one served.
DROP INDEX IF EXISTS saga.idx_saga_step_logs_saga_id_step_index;
-- An attempt is closed in place, at little cost only where no index has its status; two or four different values lead
-- nobody anywhere (decision 0047).
DROP INDEX IF EXISTS saga.idx_saga_step_logs_status;
DROP INDEX IF EXISTS saga.idx_saga_step_logs_action;
DROP INDEX IF EXISTS saga.idx_saga_step_logs_step_name;
-- Rows come in the order of their starts, so a summary of every so many pages finds those of a time.
DROP INDEX IF EXISTS saga.idx_saga_step_logs_started_at;
CREATE INDEX idx_saga_step_logs_started_at ON saga.saga_step_logs USING brin (started_at) WITH (autosummarize = on);
ALTER TABLE saga.saga_step_logs ALTER COLUMN id SET DEFAULT platform.new_id();
CREATE OR REPLACE TRIGGER trigger_saga_step_logs_update_updated_at BEFORE UPDATE ON saga.saga_step_logs
    FOR EACH ROW WHEN (NEW.updated_at = OLD.updated_at)
    EXECUTE FUNCTION saga.update_updated_at();
-- Half of a page is for the ends of what was begun in the other half.
ALTER TABLE saga.saga_step_logs SET (
    fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.1);
ALTER TABLE saga.saga_states SET (
    fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);

-- A saga without a definition was begun by the system before ours. What it does is not known here, so a person is
-- asked: it gets the rows in its log that make it wait at the step where it stands, and goes on by what this person
-- says, with the workflow of its name that is current then. Gives the number of sagas that people were told of.
CREATE FUNCTION saga.ask_about_unknown() RETURNS BIGINT LANGUAGE plpgsql
  SET search_path = pg_catalog
AS $$
DECLARE
    v_saga   RECORD;
    v_next   INT;
    v_step   INT;
    v_op     TEXT;
    v_reason TEXT;
    v_asked  BIGINT := 0;
BEGIN
    FOR v_saga IN
        SELECT t.id, t.workflow_name, t.status, t.error_message
        FROM saga.saga_states t
        WHERE t.definition_hash IS NULL AND NOT t.needs_person AND t.phase IN ('NEW', 'FORWARD', 'COMPENSATING')
        ORDER BY t.id
        FOR UPDATE
    LOOP
        v_op := CASE v_saga.status WHEN 'COMPENSATING' THEN 'COMPENSATE' ELSE 'EXECUTE' END;
        v_reason := 'it was begun without a definition: register the workflow ' || v_saga.workflow_name
            || ' as it was then, look at what was done, and retry, resolve or skip this step';
        SELECT min(s.step) INTO v_next
        FROM generate_series(0, (SELECT count(*) FROM saga.saga_step_logs l WHERE l.saga_id = v_saga.id)) AS s (step)
        WHERE NOT EXISTS (
            SELECT 1 FROM saga.saga_step_logs l
            WHERE l.saga_id = v_saga.id AND l.step_index = s.step AND l.action = 'EXECUTE'
              AND l.status IN ('SUCCESS', 'SKIPPED'));
        v_step := v_next;
        IF v_op = 'COMPENSATE' THEN
            -- Of the steps that the log has by name, because the workflow may have no other: the last one that is not
            -- undone, or just the last one.
            SELECT COALESCE(max(l.step_index) FILTER (
                WHERE l.action = 'EXECUTE' AND l.answer IN ('done', 'unknown') AND NOT EXISTS (
                    SELECT 1 FROM saga.saga_step_logs u
                    WHERE u.saga_id = l.saga_id AND u.step_index = l.step_index AND u.action = 'COMPENSATE'
                      AND u.status IN ('SUCCESS', 'SKIPPED'))), max(l.step_index), 0)
            INTO v_step
            FROM saga.saga_step_logs l WHERE l.saga_id = v_saga.id AND l.step_name <> '';
        END IF;
        -- It may have been called when the system before ours was stopped or turned the saga round: that wrote an
        -- attempt down at its end, and the status RUNNING with the first of them. Where the workflow has no such
        -- step, this row is dropped once that is known.
        IF NOT EXISTS (
            SELECT 1 FROM saga.saga_step_logs l
            WHERE l.saga_id = v_saga.id AND l.step_index = v_next AND l.action = 'EXECUTE' AND l.answer = 'unknown')
        THEN
            PERFORM saga.log_unknown(v_saga.id, v_next, 'EXECUTE', 'unknown', CASE v_op
                WHEN 'EXECUTE' THEN 'worker lost'
                ELSE concat_ws(': ', 'it may have been called when the saga was turned round', v_saga.error_message)
            END);
        END IF;
        PERFORM saga.log_unknown(v_saga.id, v_step, v_op, 'unserved', v_reason);

        UPDATE saga.saga_states
        SET status = CASE v_op WHEN 'EXECUTE' THEN 'RUNNING' ELSE 'COMPENSATING' END,
            current_step = v_next,
            compensation = CASE v_op WHEN 'EXECUTE' THEN 'none' ELSE 'stuck' END,
            abort_requested = CASE v_op WHEN 'COMPENSATE' THEN 'compensate' END,
            abort_actor = CASE v_op WHEN 'COMPENSATE' THEN 'the system before' END,
            abort_reason = CASE v_op WHEN 'COMPENSATE' THEN left(COALESCE(v_saga.error_message, ''), 1000) END,
            abort_at = CASE v_op WHEN 'COMPENSATE' THEN clock_timestamp() END,
            step_outputs = COALESCE((
                SELECT jsonb_object_agg(l.step_name, l.response_payload)
                FROM saga.saga_step_logs l
                WHERE l.saga_id = v_saga.id AND l.action = 'EXECUTE' AND l.status = 'SUCCESS'), '{}'),
            wake_at = NULL, needs_person = true, stuck_step = v_step, stuck_op = v_op, stuck_reason = v_reason
        WHERE id = v_saga.id;
        INSERT INTO platform.notify_events (slice, kind, subject, item_id, summary)
        VALUES ('saga', CASE v_op WHEN 'EXECUTE' THEN 'stuck' ELSE 'compensation_stuck' END,
                v_saga.workflow_name, v_saga.id::text, left(v_reason, 500));
        v_asked := v_asked + 1;
    END LOOP;
    RETURN v_asked;
END $$;

-- A row that no call of ours belongs to. The name of its step is known only once the saga has a definition.
CREATE FUNCTION saga.log_unknown(p_saga_id UUID, p_step INT, p_action TEXT, p_answer TEXT, p_error TEXT) RETURNS void
LANGUAGE sql
SET search_path = pg_catalog
AS $$
    INSERT INTO saga.saga_step_logs
        (saga_id, step_index, step_name, action, attempt, status, answer, is_unsent, is_last, error_message,
         started_at, completed_at)
    SELECT p_saga_id, p_step, COALESCE(max(l.step_name), ''), p_action,
           1 + COALESCE(max(l.attempt) FILTER (WHERE l.action = p_action), 0),
           CASE p_answer WHEN 'unknown' THEN 'TIMEOUT' ELSE 'FAILED' END, p_answer, p_answer = 'unserved',
           p_answer = 'unknown', p_error, clock_timestamp(), clock_timestamp()
    FROM saga.saga_step_logs l WHERE l.saga_id = p_saga_id AND l.step_index = p_step
$$;

SELECT saga.ask_about_unknown();
