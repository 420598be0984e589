-- As before, but a destination has a name that the configuration could give it: an order for another one was stored
-- and could never be sent. The client library and the API refuse it too.
CREATE OR REPLACE FUNCTION outbox.add_order(
    request         JSON,
    idempotency_key TEXT,
    destination     TEXT,
    ordering_key    TEXT DEFAULT NULL,
    trace_id        TEXT DEFAULT NULL,
    OUT id      BIGINT,
    OUT outcome TEXT
) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    -- Compared by bytes, whatever collation the caller's columns have.
    v_key          TEXT COLLATE "C" := idempotency_key;
    v_destination  TEXT COLLATE "C" := destination;
    v_ordering_key TEXT COLLATE "C" := ordering_key;
    v_trace_id     TEXT COLLATE "C" := trace_id;
    v_digest       TEXT COLLATE "C";
    v_request      JSONB;
BEGIN
    outcome := 'refused';
    IF v_key IS NULL OR v_key !~ '^[!-~]{8,64}$' THEN RETURN; END IF;
    IF v_destination IS NULL OR v_destination !~ '^[a-z][a-z0-9_.-]{0,99}$' THEN RETURN; END IF;
    IF v_ordering_key = '' OR length(v_ordering_key) > 255 THEN RETURN; END IF;
    -- A batch of orders is in memory at once.
    IF octet_length(request::text) > 1048576 THEN RETURN; END IF;
    IF length(v_trace_id) > 255 THEN RETURN; END IF;
    v_digest := outbox.request_digest(v_destination, v_ordering_key, request);
    IF v_digest IS NULL THEN RETURN; END IF;
    -- Stored is the canonical form: numeric would write 0e-16383 with all its zeros.
    v_request := outbox.canonical_json(request);
    -- The request's own, where it has one that is fit to be one.
    IF v_trace_id IS NULL AND jsonb_typeof(v_request -> 'trace_id') = 'string'
       AND length(v_request ->> 'trace_id') BETWEEN 1 AND 255 THEN
        v_trace_id := v_request ->> 'trace_id';
    END IF;
    SELECT added.id, added.outcome
    INTO add_order.id, add_order.outcome
    FROM outbox.insert_order(
        p_idempotency_key => v_key, p_destination => v_destination, p_request => v_request, p_digest => v_digest,
        p_ordering_key => v_ordering_key, p_trace_id => v_trace_id, p_traceparent => NULL,
        p_actor => session_user::text) AS added;
END $$;
