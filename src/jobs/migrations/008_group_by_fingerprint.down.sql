ALTER TABLE jobs.job_queue DROP COLUMN IF EXISTS fingerprint;
