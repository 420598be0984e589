-- A service that guards the steps of sagas: sagaGuard. Its table is in the database of the service, in the schema that
-- the guard was given (`public` by default); make it first, with `guard.migrate(pool)` of a role that may.
--   psql -v role=my_participant -v schema=public -f guard-steps.sql my_database
GRANT USAGE ON SCHEMA :"schema" TO :"role";
GRANT SELECT, INSERT, UPDATE, DELETE ON :"schema".redrive_saga_steps TO :"role";
