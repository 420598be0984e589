DROP FUNCTION saga.start_saga(TEXT, JSONB, TEXT, TEXT, TEXT, TEXT, TEXT);
DROP FUNCTION saga.register_workflow(TEXT, TEXT, JSONB, BOOLEAN);

-- Begins a saga in the caller's transaction, with the current definition of its workflow. With a key that was used
-- before, that saga is the answer, or a mismatch where something else was asked for then. What the API refuses is
-- refused here with invalid_parameter_value; a trace that is none is left out, as there.
CREATE FUNCTION saga.start_saga(
    p_workflow_name  TEXT,
    p_payload        JSONB DEFAULT NULL,
    p_correlation_id TEXT  DEFAULT NULL,
    p_initiated_by   TEXT  DEFAULT NULL,
    p_key            TEXT  DEFAULT NULL,
    p_trace          TEXT  DEFAULT NULL,
    OUT saga_id UUID,
    OUT outcome TEXT
) LANGUAGE plpgsql
  SET search_path = pg_catalog
AS $$
#variable_conflict use_column
DECLARE
    v_hash    TEXT;
    v_limit   BIGINT;
    v_digest  TEXT;
    v_payload JSONB;
    v_flaw    TEXT := CASE
        WHEN p_workflow_name IS NULL OR length(p_workflow_name) NOT BETWEEN 1 AND 255
            THEN 'workflow_name must be a text of 1 to 255 characters'
        WHEN length(p_correlation_id) NOT BETWEEN 1 AND 255
            THEN 'correlation_id must be a text of 1 to 255 characters'
        WHEN length(p_initiated_by) NOT BETWEEN 1 AND 255
            THEN 'initiated_by must be a text of 1 to 255 characters'
        WHEN p_key COLLATE "C" !~ '^[!-~]{1,255}$' THEN 'key must be 1 to 255 visible ASCII characters'
        ELSE 'payload ' || saga.flaw_of_payload(p_payload)
    END;
BEGIN
    IF v_flaw IS NOT NULL THEN
        RAISE EXCEPTION 'saga.start_saga: %', v_flaw USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT w.current_hash, (d.definition ->> 'deadline_ms')::bigint INTO v_hash, v_limit
    FROM saga.workflows w JOIN saga.workflow_definitions d ON d.hash = w.current_hash
    WHERE w.name = p_workflow_name;
    IF NOT FOUND THEN
        outcome := 'unknown_workflow';
        RETURN;
    END IF;
    v_payload := saga.with_plain_numbers(p_payload);
    saga_id := platform.new_id();
    IF p_key IS NOT NULL THEN
        v_digest := encode(sha256(convert_to(
            jsonb_build_array(p_workflow_name, v_payload, p_correlation_id, p_initiated_by)::text, 'UTF8')), 'hex');
        LOOP
            INSERT INTO saga.saga_start_keys (workflow_name, key, digest, saga_id, expires_at)
            VALUES (p_workflow_name, p_key, v_digest, saga_id, clock_timestamp() + interval '30 days')
            ON CONFLICT (workflow_name, key) DO NOTHING;
            EXIT WHEN FOUND;
            SELECT k.saga_id, CASE WHEN k.digest = v_digest THEN 'replayed' ELSE 'mismatch' END INTO saga_id, outcome
            FROM saga.saga_start_keys k WHERE k.workflow_name = p_workflow_name AND k.key = p_key;
            IF FOUND THEN
                RETURN;
            END IF;
            -- Its time was over this moment: the key is free.
            saga_id := platform.new_id();
        END LOOP;
    END IF;
    INSERT INTO saga.saga_states
        (id, workflow_name, payload, correlation_id, initiated_by, definition_hash, wake_at, deadline_at, trace)
    VALUES (saga_id, p_workflow_name, v_payload, p_correlation_id, p_initiated_by, v_hash, clock_timestamp(),
            clock_timestamp() + v_limit * interval '1 millisecond',
            -- A trace is never worth the saga itself. It is kept in the version that everybody reads.
            CASE
                WHEN p_trace COLLATE "C" ~ '^[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-[^\n]*)?$'
                     AND p_trace NOT LIKE 'ff-%' AND (length(p_trace) = 55 OR p_trace NOT LIKE '00-%')
                THEN '00-' || substr(p_trace, 4, 50)
                     || CASE WHEN strpos('13579bdf', substr(p_trace, 55, 1)) > 0 THEN '01' ELSE '00' END
            END);
    outcome := 'started';
    PERFORM pg_notify('redrive', 'saga')
    WHERE EXISTS (SELECT 1 FROM platform.idle_workers WHERE channel = 'saga' AND idle_until > clock_timestamp());
END $$;
