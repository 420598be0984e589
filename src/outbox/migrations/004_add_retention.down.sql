DROP INDEX outbox.idx_outbox_orders_unresolved;
DROP INDEX outbox.idx_outbox_orders_internal_sent;
DROP TABLE outbox.idempo_ledger_archive;
DROP TABLE outbox.outbox_orders_archive;

-- The audit loses nothing: the months go back into DEFAULT.
DO $$
DECLARE
    v_name TEXT;
BEGIN
    FOR v_name IN SELECT name FROM outbox.audit_partitions() LOOP
        EXECUTE format('ALTER TABLE outbox.outbox_audit DETACH PARTITION outbox.%I', v_name);
        EXECUTE format('INSERT INTO outbox.outbox_audit_default OVERRIDING SYSTEM VALUE SELECT * FROM outbox.%I', v_name);
        EXECUTE format('DROP TABLE outbox.%I', v_name);
    END LOOP;
END $$;

DROP FUNCTION outbox.drop_old_audit(INTERVAL);
DROP FUNCTION outbox.adopt_default_audit();
DROP FUNCTION outbox.make_audit_months();
DROP FUNCTION outbox.audit_partitions();
