DROP TRIGGER job_queue_bound_payload ON jobs.job_queue;
