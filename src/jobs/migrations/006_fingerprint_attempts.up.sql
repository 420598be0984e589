-- What failed attempts have in common; NULL where no worker reported a failure (a lost lease), and for older attempts.
ALTER TABLE jobs.job_attempts ADD COLUMN fingerprint TEXT;
