-- Some of the work that one process does for all is rare. When it last succeeded outlives the process and its metrics.
ALTER TABLE platform.leases ADD COLUMN succeeded_at timestamptz;
