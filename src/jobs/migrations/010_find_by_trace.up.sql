-- Jobs of one trace, whose id is in the traceparent. Only jobs with a trace have an entry.
CREATE INDEX idx_job_queue_trace_id ON jobs.job_queue (substr(trace, 4, 32)) WHERE trace IS NOT NULL;
