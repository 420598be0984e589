-- Where a job failed: the class of what was thrown, and its stack, cut.
ALTER TABLE jobs.job_attempts ADD COLUMN error_class TEXT, ADD COLUMN stack TEXT;

-- The rule that the API and the client library have, for whoever adds jobs by SQL. Jobs that are there are not looked
-- at: those with another name can still be run.
ALTER DOMAIN jobs.queue_name
    ADD CONSTRAINT queue_name_is_plain CHECK (VALUE COLLATE "C" ~ '^[a-z][a-z0-9_.-]{0,99}$') NOT VALID;
