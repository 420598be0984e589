DROP INDEX jobs.idx_job_queue_trace_id;
