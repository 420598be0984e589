-- Whose a saga is: the principal that started it over HTTP. NULL without authentication, and for sagas that were started
-- in SQL or by the client library. A key is kept longer than its saga may be.
ALTER TABLE saga.saga_states ADD COLUMN created_by TEXT;
ALTER TABLE saga.saga_states_archive ADD COLUMN created_by TEXT;
ALTER TABLE saga.saga_start_keys ADD COLUMN created_by TEXT;
-- Producers list their own, which may lie behind a million others.
CREATE INDEX idx_saga_states_created_by
    ON saga.saga_states (created_by, created_at DESC, id DESC) WHERE created_by IS NOT NULL;

DROP FUNCTION saga.start_saga(TEXT, JSONB, TEXT, TEXT, TEXT, TEXT, TEXT);

-- As before, with the principal. It starts a saga in the caller's transaction, with the definition of the given hash or else the current one. The outcome
-- is one of: started; replayed (the key started this saga before) or mismatch (it started one with other contents);
-- unknown_workflow; unregistered (the workflow has no definition of that hash: current_hash is the one it has); busy
-- (another open transaction holds the key: try again). What the API refuses is refused here with
-- invalid_parameter_value; an invalid trace is left out, as there.
CREATE FUNCTION saga.start_saga(
    p_workflow_name  TEXT,
    p_payload        JSONB DEFAULT NULL,
    p_correlation_id TEXT  DEFAULT NULL,
    p_initiated_by   TEXT  DEFAULT NULL,
    p_key            TEXT  DEFAULT NULL,
    p_trace          TEXT  DEFAULT NULL,
    p_hash           TEXT  DEFAULT NULL,
    p_created_by     TEXT  DEFAULT NULL,
    OUT saga_id      UUID,
    OUT outcome      TEXT,
    OUT current_hash TEXT
) LANGUAGE plpgsql
  SET search_path = pg_catalog
AS $$
#variable_conflict use_column
DECLARE
    v_hash    TEXT;
    v_limit   BIGINT;
    v_digest  TEXT;
    v_payload JSONB;
    v_is_new  BOOLEAN;
    v_timeout TEXT := current_setting('lock_timeout');
    v_flaw    TEXT := CASE
        WHEN p_workflow_name IS NULL OR length(p_workflow_name) NOT BETWEEN 1 AND 255
            THEN 'workflow_name must be a text of 1 to 255 characters'
        WHEN length(p_correlation_id) NOT BETWEEN 1 AND 255
            THEN 'correlation_id must be a text of 1 to 255 characters'
        WHEN length(p_initiated_by) NOT BETWEEN 1 AND 255
            THEN 'initiated_by must be a text of 1 to 255 characters'
        WHEN p_key COLLATE "C" !~ '^[!-~]{1,255}$' THEN 'key must be 1 to 255 visible ASCII characters'
        WHEN p_hash COLLATE "C" !~ '^sha256:[0-9a-f]{64}$' THEN 'hash must be sha256: and 64 hexadecimal digits'
        ELSE 'payload ' || saga.flaw_of_payload(p_payload)
    END;
BEGIN
    IF v_flaw IS NOT NULL THEN
        RAISE EXCEPTION 'saga.start_saga: %', v_flaw USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT w.current_hash, d.hash, (d.definition ->> 'deadline_ms')::bigint INTO current_hash, v_hash, v_limit
    FROM saga.workflows w
    LEFT JOIN saga.workflow_definitions d ON d.hash = COALESCE(p_hash, w.current_hash) AND d.name = w.name
    WHERE w.name = p_workflow_name;
    IF v_hash IS NULL THEN
        outcome := CASE WHEN FOUND THEN 'unregistered' ELSE 'unknown_workflow' END;
        RETURN;
    END IF;
    v_payload := saga.with_plain_numbers(p_payload);
    saga_id := platform.new_id();
    IF p_key IS NOT NULL THEN
        v_digest := encode(sha256(convert_to(
            jsonb_build_array(p_workflow_name, v_payload, p_correlation_id, p_initiated_by)::text, 'UTF8')), 'hex');
        LOOP
            -- Only this wait is bounded here: for all others the caller's own timeout holds.
            BEGIN
                PERFORM set_config('lock_timeout', '500ms', true);
                INSERT INTO saga.saga_start_keys (workflow_name, key, digest, saga_id, expires_at, created_by)
                VALUES (p_workflow_name, p_key, v_digest, saga_id, clock_timestamp() + interval '30 days', p_created_by)
                ON CONFLICT (workflow_name, key) DO NOTHING;
                v_is_new := FOUND;
                PERFORM set_config('lock_timeout', v_timeout, true);
            EXCEPTION WHEN lock_not_available THEN
                saga_id := NULL;
                outcome := 'busy';
                RETURN;
            END;
            EXIT WHEN v_is_new;
            SELECT k.saga_id, CASE WHEN k.digest = v_digest THEN 'replayed' ELSE 'mismatch' END INTO saga_id, outcome
            FROM saga.saga_start_keys k WHERE k.workflow_name = p_workflow_name AND k.key = p_key;
            IF FOUND THEN
                RETURN;
            END IF;
            -- It has just expired: the key is free.
            saga_id := platform.new_id();
        END LOOP;
    END IF;
    INSERT INTO saga.saga_states
        (id, workflow_name, payload, correlation_id, initiated_by, definition_hash, wake_at, deadline_at, created_by,
         trace)
    VALUES (saga_id, p_workflow_name, v_payload, p_correlation_id, p_initiated_by, v_hash, clock_timestamp(),
            clock_timestamp() + v_limit * interval '1 millisecond', p_created_by,
            -- An invalid trace does not refuse the saga. A valid one is stored in the version that everybody reads.
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
