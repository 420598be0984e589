GRANT EXECUTE ON FUNCTION
    outbox.make_audit_months(), outbox.adopt_default_audit(), outbox.drop_old_audit(INTERVAL) TO PUBLIC;

CREATE OR REPLACE FUNCTION outbox.drop_old_audit(p_keep INTERVAL) RETURNS INT LANGUAGE plpgsql SECURITY INVOKER
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

ALTER FUNCTION outbox.adopt_default_audit() SECURITY INVOKER SET search_path = pg_catalog;
ALTER FUNCTION outbox.make_audit_months() SECURITY INVOKER SET search_path = pg_catalog;
ALTER FUNCTION outbox.audit_partitions() SET search_path = pg_catalog;
