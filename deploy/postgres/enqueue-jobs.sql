-- A service that adds jobs in its own transactions: jobs.enqueue, or SELECT jobs.enqueue(…).
--   psql -v role=my_service -f enqueue-jobs.sql redrive
GRANT USAGE ON SCHEMA jobs, platform TO :"role";
GRANT SELECT, INSERT ON jobs.job_queue TO :"role";
GRANT SELECT ON jobs.queues, platform.idle_workers TO :"role";
