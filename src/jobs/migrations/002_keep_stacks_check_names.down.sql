ALTER DOMAIN jobs.queue_name DROP CONSTRAINT queue_name_is_plain;
ALTER TABLE jobs.job_attempts DROP COLUMN error_class, DROP COLUMN stack;
