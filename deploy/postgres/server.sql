-- A server that only verifies the migrations (database.migrate: false). Run it as the role that runs
-- `redrive migrate up`, after it; tables of later migrations are covered too.
--   psql -v role=redrive_server -f server.sql redrive
GRANT USAGE ON SCHEMA platform, dlq, outbox, jobs, saga, access, console TO :"role";
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA platform, dlq, outbox, jobs, saga, access, console TO :"role";
GRANT USAGE ON ALL SEQUENCES IN SCHEMA platform, dlq, outbox, jobs, saga, access, console TO :"role";
GRANT EXECUTE ON ALL ROUTINES IN SCHEMA platform, dlq, outbox, jobs, saga, access, console TO :"role";
ALTER DEFAULT PRIVILEGES IN SCHEMA platform, dlq, outbox, jobs, saga, access, console
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO :"role";
ALTER DEFAULT PRIVILEGES IN SCHEMA platform, dlq, outbox, jobs, saga, access, console GRANT USAGE ON SEQUENCES TO :"role";
ALTER DEFAULT PRIVILEGES IN SCHEMA platform, dlq, outbox, jobs, saga, access, console GRANT EXECUTE ON ROUTINES TO :"role";
-- The history of migrations is only read, saved positions are only for migrations, and the audit is only added to.
REVOKE INSERT, UPDATE, DELETE ON platform.migrations FROM :"role";
REVOKE ALL ON platform.dlq_positions FROM :"role";
REVOKE UPDATE, DELETE ON outbox.outbox_audit FROM :"role";
-- What was encrypted with a data key is lost with it.
REVOKE DELETE ON platform.data_keys FROM :"role";
-- The audit log is read and added to, never changed; its old months are dropped by a function of the owner.
GRANT USAGE ON SCHEMA audit TO :"role";
GRANT SELECT, INSERT ON audit.events, audit.seals TO :"role";
GRANT SELECT ON audit.dropped_months, audit.events_seq TO :"role";
GRANT EXECUTE ON ALL ROUTINES IN SCHEMA audit TO :"role";
ALTER DEFAULT PRIVILEGES IN SCHEMA audit GRANT EXECUTE ON ROUTINES TO :"role";
