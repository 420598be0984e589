ALTER TABLE jobs.job_attempts DROP COLUMN IF EXISTS fingerprint;
