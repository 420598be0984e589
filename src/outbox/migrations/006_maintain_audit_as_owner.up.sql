-- Only the owner of a table adds and drops its partitions. A server that does not own the outbox keeps its audit by
-- these functions, which act as the owner. Whoever may call them can drop old months, so nobody may unless it is granted.
--
-- pg_temp comes last: where a path does not name it, temporary tables of the caller are found first, and a table
-- pg_inherits of the caller's making would decide what is dropped.
ALTER FUNCTION outbox.audit_partitions() SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION outbox.make_audit_months() SECURITY DEFINER SET search_path = pg_catalog, pg_temp;
ALTER FUNCTION outbox.adopt_default_audit() SECURITY DEFINER SET search_path = pg_catalog, pg_temp;

CREATE OR REPLACE FUNCTION outbox.drop_old_audit(p_keep INTERVAL) RETURNS INT LANGUAGE plpgsql SECURITY DEFINER
  SET search_path = pg_catalog, pg_temp
  SET timezone = 'UTC'
AS $$
DECLARE
    v_names TEXT[];
    v_name  TEXT;
BEGIN
    IF p_keep IS NULL OR p_keep < interval '0' THEN
        RAISE EXCEPTION 'outbox.drop_old_audit: p_keep must not be negative' USING ERRCODE = 'invalid_parameter_value';
    END IF;
    v_names := ARRAY(SELECT p.name FROM outbox.audit_partitions() p WHERE p.ends_at <= now() - p_keep);
    -- This locks the whole before its part, as everybody does. Somebody else may have dropped it by now.
    FOREACH v_name IN ARRAY v_names LOOP
        EXECUTE format('DROP TABLE IF EXISTS outbox.%I', v_name);
    END LOOP;
    RETURN cardinality(v_names);
END $$;

REVOKE ALL ON FUNCTION
    outbox.make_audit_months(), outbox.adopt_default_audit(), outbox.drop_old_audit(INTERVAL) FROM PUBLIC;
