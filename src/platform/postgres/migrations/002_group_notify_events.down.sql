DROP TABLE IF EXISTS platform.notify_groups;
ALTER TABLE platform.notify_events RESET (autovacuum_vacuum_scale_factor, autovacuum_vacuum_threshold);
