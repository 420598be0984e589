ALTER TABLE saga.saga_states RENAME COLUMN needs_person TO needs_attention;
ALTER TABLE saga.saga_states_archive RENAME COLUMN needs_person TO needs_attention;
ALTER INDEX saga.idx_saga_states_needs_person RENAME TO idx_saga_states_needs_attention;

-- Sagas without a definition were started by the predecessor. They need attention: the function logs them as stuck at
-- their current step, from which they go on with the workflow of that name that is current when an operator decides.
-- Returns how many sagas it marked.
CREATE OR REPLACE FUNCTION saga.ask_about_unknown() RETURNS BIGINT LANGUAGE plpgsql
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
        WHERE t.definition_hash IS NULL AND NOT t.needs_attention AND t.phase IN ('NEW', 'FORWARD', 'COMPENSATING')
        ORDER BY t.id
        FOR UPDATE
    LOOP
        v_op := CASE v_saga.status WHEN 'COMPENSATING' THEN 'COMPENSATE' ELSE 'EXECUTE' END;
        v_reason := 'started without a definition: register the workflow ' || v_saga.workflow_name
            || ' as it was then, check what was done, and retry, resolve or skip this step';
        SELECT min(s.step) INTO v_next
        FROM generate_series(0, (SELECT count(*) FROM saga.saga_step_logs l WHERE l.saga_id = v_saga.id)) AS s (step)
        WHERE NOT EXISTS (
            SELECT 1 FROM saga.saga_step_logs l
            WHERE l.saga_id = v_saga.id AND l.step_index = s.step AND l.action = 'EXECUTE'
              AND l.status IN ('SUCCESS', 'SKIPPED'));
        v_step := v_next;
        IF v_op = 'COMPENSATE' THEN
            -- Only steps that the log has by name; the workflow may have no others. The last one that is not undone,
            -- or the last one.
            SELECT COALESCE(max(l.step_index) FILTER (
                WHERE l.action = 'EXECUTE' AND l.answer IN ('done', 'unknown') AND NOT EXISTS (
                    SELECT 1 FROM saga.saga_step_logs u
                    WHERE u.saga_id = l.saga_id AND u.step_index = l.step_index AND u.action = 'COMPENSATE'
                      AND u.status IN ('SUCCESS', 'SKIPPED'))), max(l.step_index), 0)
            INTO v_step
            FROM saga.saga_step_logs l WHERE l.saga_id = v_saga.id AND l.step_name <> '';
        END IF;
        -- The predecessor logged an attempt only after it ended, so this step may have been called when it stopped or
        -- started to compensate. If the workflow turns out to have no such step, the row is dropped.
        IF NOT EXISTS (
            SELECT 1 FROM saga.saga_step_logs l
            WHERE l.saga_id = v_saga.id AND l.step_index = v_next AND l.action = 'EXECUTE' AND l.answer = 'unknown')
        THEN
            PERFORM saga.log_unknown(v_saga.id, v_next, 'EXECUTE', 'unknown', CASE v_op
                WHEN 'EXECUTE' THEN 'worker lost'
                ELSE concat_ws(': ', 'may have been called before compensation started', v_saga.error_message)
            END);
        END IF;
        PERFORM saga.log_unknown(v_saga.id, v_step, v_op, 'unserved', v_reason);

        UPDATE saga.saga_states
        SET status = CASE v_op WHEN 'EXECUTE' THEN 'RUNNING' ELSE 'COMPENSATING' END,
            current_step = v_next,
            compensation = CASE v_op WHEN 'EXECUTE' THEN 'none' ELSE 'stuck' END,
            abort_requested = CASE v_op WHEN 'COMPENSATE' THEN 'compensate' END,
            abort_actor = CASE v_op WHEN 'COMPENSATE' THEN 'predecessor' END,
            abort_reason = CASE v_op WHEN 'COMPENSATE' THEN left(COALESCE(v_saga.error_message, ''), 1000) END,
            abort_at = CASE v_op WHEN 'COMPENSATE' THEN clock_timestamp() END,
            step_outputs = COALESCE((
                SELECT jsonb_object_agg(l.step_name, l.response_payload)
                FROM saga.saga_step_logs l
                WHERE l.saga_id = v_saga.id AND l.action = 'EXECUTE' AND l.status = 'SUCCESS'), '{}'),
            wake_at = NULL, needs_attention = true, stuck_step = v_step, stuck_op = v_op, stuck_reason = v_reason
        WHERE id = v_saga.id;
        INSERT INTO platform.notify_events (slice, kind, subject, item_id, summary)
        VALUES ('saga', CASE v_op WHEN 'EXECUTE' THEN 'stuck' ELSE 'compensation_stuck' END,
                v_saga.workflow_name, v_saga.id::text, left(v_reason, 500));
        v_asked := v_asked + 1;
    END LOOP;
    RETURN v_asked;
END $$;
