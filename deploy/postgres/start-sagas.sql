-- A service that starts sagas in its own transactions: saga.start, also with `register`, or SELECT saga.start_saga(…).
--   psql -v role=my_service -f start-sagas.sql redrive
GRANT USAGE ON SCHEMA saga, platform TO :"role";
GRANT SELECT, INSERT, UPDATE ON saga.workflows TO :"role";
GRANT SELECT, INSERT ON saga.workflow_definitions, saga.saga_start_keys TO :"role";
GRANT INSERT ON saga.saga_states TO :"role";
GRANT SELECT ON platform.idle_workers TO :"role";
