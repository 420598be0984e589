CREATE SCHEMA IF NOT EXISTS audit;

-- What people did: one row for every act of a person, of a key on a person's behalf, of a policy and of the system,
-- written in the transaction of the change. Rows are only added; whole months are dropped.
CREATE SEQUENCE audit.events_seq;

CREATE TABLE audit.events (
    -- Given by the trigger. Gaps are normal: a transaction that was rolled back keeps its number.
    seq          BIGINT      NOT NULL,
    at           TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    -- How long the row is kept: 'usual' 400 days, 'long' seven years.
    kept         TEXT        NOT NULL DEFAULT 'usual' CHECK (kept IN ('usual', 'long')),
    actor_type   TEXT        NOT NULL
        CHECK (actor_type IN ('user', 'api_key', 'service', 'local', 'policy', 'sdk', 'cli', 'system')),
    -- As in the histories of items: `user:<issuer>|<subject>`, `key:<id>`, `policy:<name>`.
    actor_id     TEXT        NOT NULL,
    actor_name   TEXT        NOT NULL,
    roles        TEXT[]      NOT NULL DEFAULT '{}',
    -- The permission that the act needed; of acts without one its name in the same form.
    action       TEXT        NOT NULL,
    outcome      TEXT        NOT NULL CHECK (outcome IN ('success', 'failure', 'denied', 'started', 'unknown')),
    reason       TEXT,
    -- `dlq/messages/<id>`: the slice, the kind and the name of what was acted on.
    resource     TEXT        NOT NULL,
    -- Who may see the row: a narrowed role must cover every one of them. All NULL: only roles that are not narrowed.
    topics       TEXT[],
    queues       TEXT[],
    destinations TEXT[],
    workflows    TEXT[],
    -- Shared by the rows of one operation: a retry, a retry of a topic, a redrive.
    operation_id UUID,
    item_count   INT         NOT NULL DEFAULT 1 CHECK (item_count >= 0),
    -- No bytes of payloads. Numbers beyond 2^53 would not survive being read as JSON, so no hash could be made of them.
    detail       JSONB CHECK (jsonb_typeof(detail) = 'object' AND NOT jsonb_path_exists(
                     detail, '$.** ? (@.type() == "number" && (@ > 9007199254740991 || @ < -9007199254740991))')),
    request_id   TEXT,
    trace_id     TEXT,
    address      TEXT,
    agent        TEXT,
    PRIMARY KEY (seq, kept, at)
) PARTITION BY LIST (kept);

CREATE TABLE audit.events_usual PARTITION OF audit.events FOR VALUES IN ('usual') PARTITION BY RANGE (at);
CREATE TABLE audit.events_long PARTITION OF audit.events FOR VALUES IN ('long') PARTITION BY RANGE (at);

CREATE INDEX idx_events_actor ON audit.events (actor_id, seq);
CREATE INDEX idx_events_resource ON audit.events (resource, seq);
CREATE INDEX idx_events_operation ON audit.events (operation_id) WHERE operation_id IS NOT NULL;

-- Blocks of rows, chained by their hashes: sha256 of the hash before and the canonical JSON of the rows from `after_seq`
-- (exclusive) to `last_seq`. All rows of a block are of one month and kept equally long, so that dropping a month takes
-- whole blocks.
CREATE TABLE audit.seals (
    block     BIGINT      PRIMARY KEY CHECK (block > 0),
    after_seq BIGINT      NOT NULL,
    last_seq  BIGINT      NOT NULL CHECK (last_seq > after_seq),
    kept      TEXT        NOT NULL,
    month     DATE        NOT NULL,
    events    INT         NOT NULL CHECK (events > 0),
    previous  BYTEA       NOT NULL CHECK (octet_length(previous) = 32),
    hash      BYTEA       NOT NULL UNIQUE CHECK (octet_length(hash) = 32),
    sealed_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX idx_seals_last_seq ON audit.seals (last_seq);

-- Months that were dropped. Their blocks stay, so that the chain can still be followed.
CREATE TABLE audit.dropped_months (
    kept       TEXT        NOT NULL,
    begins_at  TIMESTAMPTZ NOT NULL,
    ends_at    TIMESTAMPTZ NOT NULL,
    events     BIGINT      NOT NULL,
    dropped_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (kept, begins_at)
);

CREATE FUNCTION audit.keep_of(p_action TEXT) RETURNS TEXT LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
RETURN CASE WHEN p_action = 'saga:sagas:repair' THEN 'long' ELSE 'usual' END;

-- Whoever adds a row chooses neither its number nor its time nor how long it is kept. The transaction gets its id before
-- the number: the sealer waits for older transactions, and must not miss one that has a number already.
CREATE FUNCTION audit.stamp_event() RETURNS TRIGGER LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
  SET timezone = 'UTC'
AS $$
DECLARE
    v_now TIMESTAMPTZ;
BEGIN
    PERFORM pg_current_xact_id();
    NEW.seq := nextval('audit.events_seq');
    v_now := clock_timestamp();
    -- The partition was chosen by the time that the row came with, so at the turn of a month that one stays.
    IF date_trunc('month', NEW.at) = date_trunc('month', v_now) THEN
        NEW.at := v_now;
    ELSIF NEW.at > v_now OR NEW.at < v_now - interval '1 minute' THEN
        RAISE EXCEPTION 'the time of an audit event cannot be chosen' USING ERRCODE = 'check_violation';
    END IF;
    IF NEW.kept <> audit.keep_of(NEW.action) THEN
        RAISE EXCEPTION 'how long an audit event is kept cannot be chosen' USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;

CREATE FUNCTION audit.refuse_change() RETURNS TRIGGER LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RAISE EXCEPTION '%.% is append-only: % is refused', TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_OP
        USING ERRCODE = 'insufficient_privilege';
END $$;

CREATE TRIGGER events_are_stamped BEFORE INSERT ON audit.events
    FOR EACH ROW EXECUTE FUNCTION audit.stamp_event();
CREATE TRIGGER events_are_not_changed BEFORE UPDATE OR DELETE ON audit.events
    FOR EACH ROW EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER events_are_not_truncated BEFORE TRUNCATE ON audit.events
    FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER events_are_not_truncated BEFORE TRUNCATE ON audit.events_usual
    FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER events_are_not_truncated BEFORE TRUNCATE ON audit.events_long
    FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER seals_are_not_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON audit.seals
    FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change();
CREATE TRIGGER dropped_months_are_not_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON audit.dropped_months
    FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change();

-- The partitions with rows: months of 'usual', years of 'long'.
CREATE FUNCTION audit.partitions(OUT name TEXT, OUT kept TEXT, OUT begins_at TIMESTAMPTZ, OUT ends_at TIMESTAMPTZ)
RETURNS SETOF RECORD LANGUAGE sql STABLE
  SET search_path = pg_catalog, pg_temp
  SET timezone = 'UTC'
AS $$
    SELECT part.relname, CASE WHEN i.inhparent = 'audit.events_long'::regclass THEN 'long' ELSE 'usual' END,
           bounds[1]::timestamptz, bounds[2]::timestamptz
    FROM pg_inherits i
    JOIN pg_class part ON part.oid = i.inhrelid
    CROSS JOIN LATERAL regexp_match(
        pg_get_expr(part.relpartbound, part.oid), '^FOR VALUES FROM \(''(.+)''\) TO \(''(.+)''\)$') AS bounds
    WHERE i.inhparent IN ('audit.events_usual'::regclass, 'audit.events_long'::regclass)
$$;

-- Makes the partitions of this month and the next twelve, and of this year and the next; returns how many were missing.
-- There is no default partition, whose rows could not be dropped by months: twelve months are time enough to notice that
-- nobody makes them.
CREATE FUNCTION audit.make_months() RETURNS INT LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
  SET timezone = 'UTC'
AS $$
DECLARE
    v_one  RECORD;
    v_made INT := 0;
BEGIN
    LOCK TABLE audit.events_usual, audit.events_long IN SHARE UPDATE EXCLUSIVE MODE;
    FOR v_one IN
        SELECT 'usual' AS kept, 'events_usual' AS parent, b AS begins_at, b + interval '1 month' AS ends_at,
               to_char(b, '"events_usual_"YYYY_MM') AS name
        FROM generate_series(date_trunc('month', now()), date_trunc('month', now()) + interval '12 months', '1 month') AS b
        UNION ALL
        SELECT 'long', 'events_long', b, b + interval '1 year', to_char(b, '"events_long_"YYYY')
        FROM generate_series(date_trunc('year', now()), date_trunc('year', now()) + interval '1 year', '1 year') AS b
    LOOP
        CONTINUE WHEN EXISTS (
            SELECT 1 FROM audit.partitions() p
            WHERE p.kept = v_one.kept AND p.begins_at < v_one.ends_at AND p.ends_at > v_one.begins_at);
        -- Made first and attached then, it takes no lock that inserts would wait for.
        EXECUTE format('CREATE TABLE audit.%I (LIKE audit.events INCLUDING DEFAULTS INCLUDING CONSTRAINTS)', v_one.name);
        EXECUTE format('CREATE TRIGGER events_are_not_truncated BEFORE TRUNCATE ON audit.%I '
                       'FOR EACH STATEMENT EXECUTE FUNCTION audit.refuse_change()', v_one.name);
        EXECUTE format('ALTER TABLE audit.%I ATTACH PARTITION audit.%I FOR VALUES FROM (%L) TO (%L)',
                       v_one.parent, v_one.name, v_one.begins_at, v_one.ends_at);
        v_made := v_made + 1;
    END LOOP;
    RETURN v_made;
END $$;

SELECT audit.make_months();

-- Adds an event from SQL and from commands that work on the database without a server; returns its number. The actor is
-- the login, so that nobody can write in the name of a person.
CREATE FUNCTION audit.record(
    p_action TEXT, p_resource TEXT, p_reason TEXT DEFAULT NULL, p_outcome TEXT DEFAULT 'success',
    p_detail JSONB DEFAULT NULL, p_actor_type TEXT DEFAULT 'cli', p_actor_name TEXT DEFAULT NULL,
    p_topics TEXT[] DEFAULT NULL, p_item_count INT DEFAULT 1, p_operation_id UUID DEFAULT NULL
) RETURNS BIGINT LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_seq BIGINT;
BEGIN
    IF p_actor_type NOT IN ('cli', 'sdk', 'system') THEN
        RAISE EXCEPTION 'audit.record: p_actor_type must be cli, sdk or system' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    INSERT INTO audit.events
        (kept, actor_type, actor_id, actor_name, action, outcome, reason, resource, topics, operation_id, item_count,
         detail, address)
    VALUES (audit.keep_of(p_action), p_actor_type, 'db:' || session_user, left(COALESCE(p_actor_name, session_user), 255),
            p_action, p_outcome, left(p_reason, 4000), left(p_resource, 500), p_topics, p_operation_id, p_item_count,
            p_detail, host(inet_client_addr()))
    RETURNING seq INTO v_seq;
    RETURN v_seq;
END $$;

-- Drops the partitions that have ended longer ago than their rows are kept, if every one of their rows is sealed; returns
-- how many. How long rows are kept is written here, so that nobody who may call it can shorten it.
CREATE FUNCTION audit.drop_old_months() RETURNS INT LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
  SET timezone = 'UTC'
AS $$
DECLARE
    v_part    RECORD;
    v_last    BIGINT;
    v_events  BIGINT;
    v_dropped INT := 0;
BEGIN
    LOCK TABLE audit.dropped_months IN SHARE ROW EXCLUSIVE MODE;
    FOR v_part IN
        SELECT p.* FROM audit.partitions() p
        WHERE p.ends_at <= now() - CASE p.kept WHEN 'long' THEN interval '7 years' ELSE interval '400 days' END
        ORDER BY p.begins_at
    LOOP
        EXECUTE format('SELECT max(seq), count(*) FROM audit.%I', v_part.name) INTO v_last, v_events;
        CONTINUE WHEN v_last > COALESCE((SELECT max(s.last_seq) FROM audit.seals s), 0);
        EXECUTE format('DROP TABLE audit.%I', v_part.name);
        INSERT INTO audit.dropped_months (kept, begins_at, ends_at, events)
        VALUES (v_part.kept, v_part.begins_at, v_part.ends_at, v_events);
        PERFORM audit.record(
            'audit:months:drop', 'audit/months/' || v_part.name, 'older than its retention', 'success',
            jsonb_build_object('begins_at', v_part.begins_at, 'ends_at', v_part.ends_at, 'events', v_events), 'system');
        v_dropped := v_dropped + 1;
    END LOOP;
    RETURN v_dropped;
END $$;

REVOKE ALL ON FUNCTION
    audit.make_months(), audit.drop_old_months(),
    audit.record(TEXT, TEXT, TEXT, TEXT, JSONB, TEXT, TEXT, TEXT[], INT, UUID) FROM PUBLIC;
