-- What failures with the same cause have in common: of `error_message`; NULL for older errors, and where no attempt has
-- failed (a job that was cancelled).
ALTER TABLE jobs.job_queue ADD COLUMN fingerprint TEXT;
CREATE INDEX idx_job_queue_dead_fingerprint
    ON jobs.job_queue (fingerprint, job_id) WHERE status = 'dead_letter' AND fingerprint IS NOT NULL;
