-- A service that some process has seen to be down. The row stays after the circuit is closed until the sagas that need
-- attention because of it have been retried; in quiet times there is none.
CREATE TABLE saga.service_circuits (
    service     TEXT        PRIMARY KEY,
    is_open     BOOLEAN     NOT NULL DEFAULT true,
    since       TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    reason      TEXT        NOT NULL DEFAULT '',
    -- How many probes in a row have failed, and when the next one is due.
    probes      INT         NOT NULL DEFAULT 0,
    probe_at    TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    -- The saga that is the probe, and until when nobody else is.
    probe_saga  UUID,
    probe_until TIMESTAMPTZ
);
