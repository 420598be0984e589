-- A service that works on jobs: jobs.work. It may enqueue them as well.
--   psql -v role=my_worker -f work-jobs.sql redrive
GRANT USAGE ON SCHEMA jobs, platform TO :"role";
GRANT SELECT, INSERT, UPDATE, DELETE ON jobs.job_queue TO :"role";
GRANT SELECT, INSERT, UPDATE ON jobs.queues TO :"role";
GRANT SELECT, INSERT ON jobs.job_attempts TO :"role";
GRANT SELECT, INSERT, UPDATE ON platform.idle_workers TO :"role";
GRANT SELECT ON platform.migrations TO :"role";
GRANT INSERT ON platform.notify_events TO :"role";
GRANT USAGE ON SEQUENCE platform.lease_epochs TO :"role";
