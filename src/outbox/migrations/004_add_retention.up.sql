-- What keeps the tables small: the audit by months, and archives for the orders whose keep is over.

-- The partitions of the audit, apart from DEFAULT. Most are a month; one that was DEFAULT before may be several.
CREATE FUNCTION outbox.audit_partitions(OUT name TEXT, OUT begins_at TIMESTAMPTZ, OUT ends_at TIMESTAMPTZ)
RETURNS SETOF RECORD LANGUAGE sql STABLE
  SET search_path = pg_catalog
  SET timezone = 'UTC'
AS $$
    SELECT part.relname, bounds[1]::timestamptz, bounds[2]::timestamptz
    FROM pg_inherits i
    JOIN pg_class part ON part.oid = i.inhrelid
    CROSS JOIN LATERAL regexp_match(
        pg_get_expr(part.relpartbound, part.oid), '^FOR VALUES FROM \(''(.+)''\) TO \(''(.+)''\)$') AS bounds
    WHERE i.inhparent = 'outbox.outbox_audit'::regclass AND bounds IS NOT NULL
$$;

-- Makes the partitions of this month and of the next two (UTC), and says how many were missing.
--
-- A table that is made first and attached then takes no lock that inserts or readers of other months would wait
-- for; only readers of DEFAULT do, for a moment. But a row that is on its way to DEFAULT while its month is being
-- attached would be refused. So a month that may get rows right now is attached while nobody writes.
CREATE FUNCTION outbox.make_audit_months() RETURNS INT LANGUAGE plpgsql
  SET search_path = pg_catalog
  SET timezone = 'UTC'
AS $$
DECLARE
    v_begin TIMESTAMPTZ;
    v_name  TEXT;
    v_made  INT := 0;
BEGIN
    -- One at a time changes the partitions, in however many replicas; those who write and read do not notice.
    LOCK TABLE outbox.outbox_audit IN SHARE UPDATE EXCLUSIVE MODE;
    FOR v_begin IN
        SELECT date_trunc('month', now()) + ahead * interval '1 month' FROM generate_series(0, 2) AS ahead
    LOOP
        CONTINUE WHEN EXISTS (
            SELECT 1 FROM outbox.audit_partitions() p WHERE v_begin >= p.begins_at AND v_begin < p.ends_at);
        IF v_begin < clock_timestamp() + interval '1 hour' THEN
            LOCK TABLE outbox.outbox_audit IN ACCESS EXCLUSIVE MODE;
        END IF;
        v_name := to_char(v_begin, '"outbox_audit_"YYYY_MM');
        EXECUTE format('CREATE TABLE outbox.%I (LIKE outbox.outbox_audit INCLUDING DEFAULTS)', v_name);
        EXECUTE format('CREATE TRIGGER outbox_audit_is_not_truncated BEFORE TRUNCATE ON outbox.%I '
                       'FOR EACH STATEMENT EXECUTE FUNCTION outbox.refuse_change_of_audit()', v_name);
        EXECUTE format('ALTER TABLE outbox.outbox_audit ATTACH PARTITION outbox.%I FOR VALUES FROM (%L) TO (%L)',
                       v_name, v_begin, v_begin + interval '1 month');
        v_made := v_made + 1;
    END LOOP;
    RETURN v_made;
END $$;

-- Empties DEFAULT of the rows that came while nobody made their months, and says how many partitions that gave.
--
-- No row is copied: the table that was DEFAULT becomes the partition of the months that its rows are of, and an
-- empty one takes its place. Everybody waits while its rows are read twice, about half a second per million.
-- Months that lie apart (the clock has jumped) become partitions of their own; rows from beyond the months that are
-- made ahead stay where they are until their time comes.
CREATE FUNCTION outbox.adopt_default_audit() RETURNS INT LANGUAGE plpgsql
  SET search_path = pg_catalog
  SET timezone = 'UTC'
AS $$
DECLARE
    v_ahead   TIMESTAMPTZ := date_trunc('month', now()) + interval '3 months';
    v_first   TIMESTAMPTZ;
    v_last    TIMESTAMPTZ;
    v_latest  TIMESTAMPTZ;
    v_next    TIMESTAMPTZ;
    v_begin   TIMESTAMPTZ;
    v_end     TIMESTAMPTZ;
    v_name    TEXT;
    v_adopted INT := 0;
BEGIN
    LOCK TABLE outbox.outbox_audit IN SHARE UPDATE EXCLUSIVE MODE;
    -- Nearly always there is nothing to do, and then nobody has to wait.
    IF NOT EXISTS (SELECT 1 FROM outbox.outbox_audit_default WHERE at < v_ahead) THEN
        RETURN 0;
    END IF;
    LOCK TABLE outbox.outbox_audit IN ACCESS EXCLUSIVE MODE;
    LOOP
        SELECT min(at), max(at) FILTER (WHERE at < v_ahead), max(at) INTO v_first, v_last, v_latest
        FROM outbox.outbox_audit_default;
        EXIT WHEN v_last IS NULL;
        SELECT min(p.begins_at) INTO v_next
        FROM outbox.audit_partitions() p WHERE p.begins_at > v_first AND p.begins_at <= v_last;
        IF v_next IS NOT NULL THEN
            SELECT max(at) INTO v_last FROM outbox.outbox_audit_default WHERE at < v_next;
        END IF;
        v_begin := date_trunc('month', v_first);
        v_end := date_trunc('month', v_last) + interval '1 month';
        v_name := to_char(v_begin, '"outbox_audit_"YYYY_MM')
            || CASE WHEN v_end > v_begin + interval '1 month' THEN to_char(v_last, '"_to_"YYYY_MM') ELSE '' END;

        ALTER TABLE outbox.outbox_audit DETACH PARTITION outbox.outbox_audit_default;
        EXECUTE format('ALTER TABLE outbox.outbox_audit_default RENAME TO %I', v_name);
        EXECUTE format('ALTER TABLE outbox.%I RENAME CONSTRAINT outbox_audit_default_pkey TO %I',
                       v_name, v_name || '_pkey');
        CREATE TABLE outbox.outbox_audit_default PARTITION OF outbox.outbox_audit DEFAULT;
        CREATE TRIGGER outbox_audit_is_not_truncated BEFORE TRUNCATE ON outbox.outbox_audit_default
            FOR EACH STATEMENT EXECUTE FUNCTION outbox.refuse_change_of_audit();
        IF v_latest >= v_end THEN
            EXECUTE format('WITH apart AS (DELETE FROM outbox.%I WHERE at >= %L RETURNING *) '
                           'INSERT INTO outbox.outbox_audit_default OVERRIDING SYSTEM VALUE SELECT * FROM apart',
                           v_name, v_end);
        END IF;
        EXECUTE format('ALTER TABLE outbox.outbox_audit ATTACH PARTITION outbox.%I FOR VALUES FROM (%L) TO (%L)',
                       v_name, v_begin, v_end);
        v_adopted := v_adopted + 1;
    END LOOP;
    RETURN v_adopted;
END $$;

-- Drops the months that ended longer ago than `p_keep`, and says how many.
CREATE FUNCTION outbox.drop_old_audit(p_keep INTERVAL) RETURNS INT LANGUAGE plpgsql
  SET search_path = pg_catalog
  SET timezone = 'UTC'
AS $$
DECLARE
    v_names TEXT[] := ARRAY(SELECT p.name FROM outbox.audit_partitions() p WHERE p.ends_at <= now() - p_keep);
    v_name  TEXT;
BEGIN
    -- This locks the whole before its part, as everybody does. Somebody else may have dropped it by now.
    FOREACH v_name IN ARRAY v_names LOOP
        EXECUTE format('DROP TABLE IF EXISTS outbox.%I', v_name);
    END LOOP;
    RETURN cardinality(v_names);
END $$;

SELECT outbox.adopt_default_audit();
SELECT outbox.make_audit_months();

-- Where orders and ledger rows stay when their key is free again: the proof of what was done with it. They come
-- in pairs, by the order's id. A key that was used again has several.
CREATE TABLE outbox.outbox_orders_archive (
    LIKE outbox.outbox_orders,
    archived_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (id)
);
CREATE INDEX idx_outbox_orders_archive_key ON outbox.outbox_orders_archive (idempotency_key);
CREATE INDEX idx_outbox_orders_archive_supersedes_id
    ON outbox.outbox_orders_archive (supersedes_id) WHERE supersedes_id IS NOT NULL;
CREATE INDEX idx_outbox_orders_archive_archived_at ON outbox.outbox_orders_archive (archived_at);

CREATE TABLE outbox.idempo_ledger_archive (
    LIKE outbox.idempo_ledger,
    archived_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (outbox_id)
);
CREATE INDEX idx_idempo_ledger_archive_key ON outbox.idempo_ledger_archive (idempotency_key);

-- Orders that the system sends itself have no ledger row that would say when they are over.
CREATE INDEX idx_outbox_orders_internal_sent
    ON outbox.outbox_orders (updated_at) WHERE status = 'sent' AND starts_with(destination, '_');

-- What waits for a person, counted by destination.
CREATE INDEX idx_outbox_orders_unresolved
    ON outbox.outbox_orders (destination, id) WHERE status = 'dead' AND resolution IS NULL;
