DROP TABLE IF EXISTS platform.notify_events;
DROP TABLE IF EXISTS platform.idle_workers;
DROP TABLE IF EXISTS platform.leases;
DROP TABLE IF EXISTS platform.replicas;
DROP SEQUENCE IF EXISTS platform.lease_epochs;
