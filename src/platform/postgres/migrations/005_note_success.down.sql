ALTER TABLE platform.leases DROP COLUMN succeeded_at;
