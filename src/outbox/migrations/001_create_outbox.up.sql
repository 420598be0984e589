-- Orders to the outside, the ledger that makes each happen once, and the audit that tells its story.
CREATE SCHEMA outbox;

CREATE TABLE outbox.outbox_orders (
    id              BIGSERIAL   PRIMARY KEY,
    idempotency_key TEXT        NOT NULL UNIQUE,
    request_json    JSONB       NOT NULL,
    request_digest  TEXT        NOT NULL,
    status          TEXT        NOT NULL CHECK (status IN ('queued', 'sending', 'sent', 'failed', 'dead')),
    retry_count     INT         NOT NULL DEFAULT 0 CHECK (retry_count >= 0),
    next_attempt_at TIMESTAMPTZ NOT NULL,
    last_error      TEXT,
    created_at      TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at      TIMESTAMPTZ NOT NULL DEFAULT now(),
    destination     TEXT        NOT NULL,
    -- Orders of one key reach one destination one after another, in the order of ordering_seq.
    ordering_key    TEXT,
    ordering_seq    BIGINT,
    -- Held back behind an earlier one of its key, so no claim need look at it. Set by a claim that found it so,
    -- taken away by whoever ends the one before it.
    held            BOOLEAN     NOT NULL DEFAULT false,
    trace_id        TEXT,
    traceparent     TEXT,
    first_sent_at   TIMESTAMPTZ,
    -- Some attempt may have had its effect without our knowing. Never taken back.
    in_doubt        BOOLEAN     NOT NULL DEFAULT false,
    response        JSONB,
    resolution      TEXT        CHECK (resolution IN ('cancelled', 'skipped', 'superseded')),
    supersedes_id   BIGINT      UNIQUE,
    lease_owner     TEXT,
    lease_until     TIMESTAMPTZ,
    lease_epoch     BIGINT      NOT NULL DEFAULT 0,
    lease_lost      BOOLEAN     NOT NULL DEFAULT false,
    CHECK ((ordering_key IS NULL) = (ordering_seq IS NULL)),
    CHECK (resolution IS NULL OR status = 'dead')
) WITH (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 1000,
    autovacuum_analyze_scale_factor = 0.05
);

-- The seed's two. What is sent is asked for by key or by time, so its rows stay out of the first.
CREATE INDEX idx_outbox_orders_status_next_attempt
    ON outbox.outbox_orders (status, next_attempt_at) WHERE status <> 'sent';
CREATE INDEX idx_outbox_orders_created_at ON outbox.outbox_orders (created_at, id);

-- The two lanes of the claim, each in exactly its order.
CREATE INDEX idx_outbox_orders_claim
    ON outbox.outbox_orders (destination, next_attempt_at, id)
    WHERE ordering_key IS NULL AND status IN ('queued', 'failed');
CREATE INDEX idx_outbox_orders_claim_keyed
    ON outbox.outbox_orders (destination, next_attempt_at, id)
    WHERE ordering_key IS NOT NULL AND NOT held AND status IN ('queued', 'failed');

-- Who comes first of a key: what still holds it.
CREATE INDEX idx_outbox_orders_key_order
    ON outbox.outbox_orders (destination, ordering_key, ordering_seq)
    WHERE ordering_key IS NOT NULL
      AND (status IN ('queued', 'sending', 'failed') OR (status = 'dead' AND resolution IS NULL));

-- What took its worker down may have to run alone; there are never many.
CREATE INDEX idx_outbox_orders_lease_lost
    ON outbox.outbox_orders (destination, next_attempt_at, id) WHERE lease_lost AND status = 'failed';

-- Lists, newest first.
CREATE INDEX idx_outbox_orders_destination ON outbox.outbox_orders (destination, id);
CREATE INDEX idx_outbox_orders_status ON outbox.outbox_orders (status, id) WHERE status <> 'sent';

-- Drawn under a lock on (destination, ordering_key) that is held to the commit, so a smaller number of a key is
-- never committed after a larger one.
CREATE SEQUENCE outbox.ordering_seqs AS BIGINT CACHE 1;

-- One row per key: what was asked, what was answered, and whether it has happened outside.
CREATE TABLE outbox.idempo_ledger (
    idempotency_key  TEXT        PRIMARY KEY,
    request_digest   TEXT        NOT NULL,
    result_digest    TEXT,
    -- Infinity until the order is sent or resolved. The key is free again when the row has left this table.
    expires_at       TIMESTAMPTZ NOT NULL DEFAULT 'infinity',
    outbox_id        BIGINT      NOT NULL,
    status           TEXT        NOT NULL DEFAULT 'accepted' CHECK (status IN ('accepted', 'succeeded', 'failed')),
    -- The answer that the first one got, replayed word for word.
    http_status      INT         NOT NULL,
    response_payload JSON        NOT NULL,
    outside_id       TEXT,
    created_at       TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at       TIMESTAMPTZ NOT NULL DEFAULT now()
) WITH (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 1000
);
CREATE INDEX idx_idempo_ledger_expires_at
    ON outbox.idempo_ledger (expires_at) WHERE expires_at < 'infinity';

-- One row per transition, by months. Rows are only ever added; a month goes as a whole when it is old.
CREATE TABLE outbox.outbox_audit (
    id              BIGINT      GENERATED ALWAYS AS IDENTITY,
    outbox_id       BIGINT      NOT NULL,
    status_from     TEXT,
    status_to       TEXT        NOT NULL,
    retry_count     INT         NOT NULL,
    last_error      TEXT,
    idempotency_key TEXT        NOT NULL,
    trace_id        TEXT,
    broker_order_id TEXT,
    lease_epoch     BIGINT,
    actor           TEXT        NOT NULL,
    reason          TEXT,
    at              TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (outbox_id, id, at)
) PARTITION BY RANGE (at);
CREATE TABLE outbox.outbox_audit_default PARTITION OF outbox.outbox_audit DEFAULT;

CREATE FUNCTION outbox.refuse_change_of_audit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit of the outbox is append-only' USING ERRCODE = 'insufficient_privilege';
END $$;
CREATE TRIGGER outbox_audit_is_append_only BEFORE UPDATE OR DELETE ON outbox.outbox_audit
    FOR EACH ROW EXECUTE FUNCTION outbox.refuse_change_of_audit();
CREATE TRIGGER outbox_audit_is_not_truncated BEFORE TRUNCATE ON outbox.outbox_audit
    FOR EACH STATEMENT EXECUTE FUNCTION outbox.refuse_change_of_audit();
-- Triggers for statements are not handed on to partitions.
CREATE TRIGGER outbox_audit_is_not_truncated BEFORE TRUNCATE ON outbox.outbox_audit_default
    FOR EACH STATEMENT EXECUTE FUNCTION outbox.refuse_change_of_audit();

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
