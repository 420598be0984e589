-- What all slices share. The schema itself and the migrations' history are made by the migration runner.

-- One value per claim statement, and one for every other bump of an epoch: a fencing token that only grows.
-- CACHE 1, so that two sessions never draw out of order.
CREATE SEQUENCE platform.lease_epochs AS BIGINT CACHE 1;

-- A heartbeat per process. Replicas share the partitions of their Kafka cluster by counting the fresh rows.
CREATE TABLE platform.replicas (
    replica_id       TEXT        PRIMARY KEY,
    roles            TEXT[]      NOT NULL,
    kafka_cluster_id TEXT,
    version          TEXT        NOT NULL,
    started_at       TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    seen_at          TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
);

-- What one process does at a time: statistics, archiving, notifications.
CREATE TABLE platform.leases (
    name        TEXT        PRIMARY KEY,
    lease_owner TEXT,
    lease_until TIMESTAMPTZ,
    lease_epoch BIGINT      NOT NULL DEFAULT 0,
    lease_lost  BOOLEAN     NOT NULL DEFAULT false
);

-- Workers that wait say so, and writers notify only when somebody waits: NOTIFY in many committing
-- transactions would serialise them.
CREATE TABLE platform.idle_workers (
    channel    TEXT        NOT NULL,
    worker     TEXT        NOT NULL,
    idle_until TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (channel, worker)
);
-- So that it is known to be small: a table that was never looked at is taken for a larger one, and whoever adds work
-- asks it whether somebody waits.
ANALYZE platform.idle_workers;

-- One row per transition that needs a person, written in the transaction of that transition.
CREATE TABLE platform.notify_events (
    id       BIGINT      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    slice    TEXT        NOT NULL,
    kind     TEXT        NOT NULL,
    subject  TEXT        NOT NULL,
    item_id  TEXT        NOT NULL,
    summary  TEXT        NOT NULL,
    at       TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX idx_notify_events_at ON platform.notify_events (at);
