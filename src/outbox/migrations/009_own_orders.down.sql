DROP FUNCTION IF EXISTS outbox.insert_order(TEXT, TEXT, JSONB, TEXT, TEXT, TEXT, TEXT, TEXT, BIGINT, BIGINT, TEXT);

-- Stores an order and its key in the caller's transaction, and never raises for what may happen in everyday use:
-- created, replayed (same key, same digest), mismatch (same key, another digest), or busy (somebody else is at
-- this key or at this ordering key right now; nothing was stored).
CREATE FUNCTION outbox.insert_order(
    p_idempotency_key TEXT,
    p_destination     TEXT,
    p_request         JSONB,
    p_digest          TEXT,
    p_ordering_key    TEXT,
    p_trace_id        TEXT,
    p_traceparent     TEXT,
    p_actor           TEXT,
    -- A corrected order takes the place in the row of the one that it supersedes.
    p_supersedes_id   BIGINT DEFAULT NULL,
    p_ordering_seq    BIGINT DEFAULT NULL,
    OUT id               BIGINT,
    OUT outcome          TEXT,
    OUT http_status      INT,
    OUT response_payload JSON
) LANGUAGE plpgsql
  SET lock_timeout = '500ms'
  SET search_path = pg_catalog
AS $$
#variable_conflict use_column
DECLARE
    v_id     BIGINT;
    v_seq    BIGINT := p_ordering_seq;
    v_now    TIMESTAMPTZ := clock_timestamp();
    v_answer JSON;
    v_known  RECORD;
BEGIN
    LOOP
        BEGIN
            v_id := nextval('outbox.outbox_orders_id_seq');
            v_answer := json_build_object(
                'id', v_id, 'idempotency_key', p_idempotency_key, 'destination', p_destination,
                'ordering_key', p_ordering_key, 'status', 'queued', 'request_digest', p_digest,
                'created_at', to_char(v_now AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"'));
            INSERT INTO outbox.idempo_ledger
                (idempotency_key, request_digest, outbox_id, http_status, response_payload, created_at, updated_at)
            VALUES (p_idempotency_key, p_digest, v_id, 201, v_answer, v_now, v_now)
            ON CONFLICT (idempotency_key) DO NOTHING;
            IF FOUND THEN
                IF p_ordering_key IS NOT NULL AND v_seq IS NULL THEN
                    PERFORM pg_advisory_xact_lock(
                        hashtextextended(p_ordering_key, hashtextextended(p_destination, 4)));
                    v_seq := nextval('outbox.ordering_seqs');
                END IF;
                INSERT INTO outbox.outbox_orders
                    (id, idempotency_key, request_json, request_digest, status, next_attempt_at, created_at, updated_at,
                     destination, ordering_key, ordering_seq, trace_id, traceparent, supersedes_id)
                VALUES (v_id, p_idempotency_key, p_request, p_digest, 'queued', v_now, v_now, v_now,
                        p_destination, p_ordering_key, v_seq, p_trace_id, p_traceparent, p_supersedes_id);
                INSERT INTO outbox.outbox_audit
                    (outbox_id, status_from, status_to, retry_count, idempotency_key, trace_id, actor)
                VALUES (v_id, NULL, 'queued', 0, p_idempotency_key, p_trace_id, p_actor);
                PERFORM pg_notify('redrive', 'outbox:' || p_destination)
                WHERE EXISTS (
                    SELECT 1 FROM platform.idle_workers
                    WHERE channel = 'outbox:' || p_destination AND idle_until > clock_timestamp());
                id := v_id;
                outcome := 'created';
                http_status := 201;
                response_payload := v_answer;
                RETURN;
            END IF;
        EXCEPTION
            WHEN lock_not_available THEN
                outcome := 'busy';
                RETURN;
            WHEN unique_violation THEN
                -- An order of the system itself has this key; it has no row in the ledger.
                SELECT o.id, 'mismatch' INTO id, outcome
                FROM outbox.outbox_orders o WHERE o.idempotency_key = p_idempotency_key;
                IF FOUND THEN
                    RETURN;
                END IF;
                RAISE;
        END;
        SELECT l.outbox_id, l.request_digest, l.response_payload INTO v_known
        FROM outbox.idempo_ledger l WHERE l.idempotency_key = p_idempotency_key;
        -- Not found: it was moved to the archive this moment, and the key is free.
        IF FOUND THEN
            id := v_known.outbox_id;
            outcome := CASE WHEN v_known.request_digest = p_digest THEN 'replayed' ELSE 'mismatch' END;
            http_status := CASE WHEN outcome = 'replayed' THEN 200 END;
            response_payload := CASE WHEN outcome = 'replayed' THEN v_known.response_payload END;
            RETURN;
        END IF;
    END LOOP;
END $$;

ALTER TABLE outbox.outbox_orders_archive DROP COLUMN IF EXISTS created_by;
ALTER TABLE outbox.outbox_orders DROP COLUMN IF EXISTS created_by;
