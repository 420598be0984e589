-- Begins a saga in the caller's transaction, with the current definition of its workflow. With a key that was used
-- before, that saga is the answer, or a mismatch where something else was asked for then.
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
    v_hash   TEXT;
    v_limit  BIGINT;
    v_digest TEXT := encode(sha256(convert_to(
        jsonb_build_array(p_workflow_name, p_payload, p_correlation_id, p_initiated_by)::text, 'UTF8')), 'hex');
BEGIN
    SELECT w.current_hash, (d.definition ->> 'deadline_ms')::bigint INTO v_hash, v_limit
    FROM saga.workflows w JOIN saga.workflow_definitions d ON d.hash = w.current_hash
    WHERE w.name = p_workflow_name;
    IF NOT FOUND THEN
        outcome := 'unknown_workflow';
        RETURN;
    END IF;
    saga_id := gen_random_uuid();
    IF p_key IS NOT NULL THEN
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
            saga_id := gen_random_uuid();
        END LOOP;
    END IF;
    INSERT INTO saga.saga_states
        (id, workflow_name, payload, correlation_id, initiated_by, definition_hash, wake_at, deadline_at, trace)
    VALUES (saga_id, p_workflow_name, p_payload, p_correlation_id, p_initiated_by, v_hash, clock_timestamp(),
            clock_timestamp() + v_limit * interval '1 millisecond', p_trace);
    outcome := 'started';
    PERFORM pg_notify('redrive', 'saga')
    WHERE EXISTS (SELECT 1 FROM platform.idle_workers WHERE channel = 'saga' AND idle_until > clock_timestamp());
END $$;
