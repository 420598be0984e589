-- What all processes share about a destination that is in trouble: how fast it may be sent to, and whether it
-- answers at all. A destination that never was in trouble has no row. Every change locks the row, so there is one
-- after another; `version` tells a process which of two readings is the newer one.
CREATE TABLE outbox.destination_state (
    destination       TEXT             PRIMARY KEY,
    version           BIGINT           NOT NULL DEFAULT 0,
    -- The throttle: orders per second right after the last cut, and what they were before the first one.
    rate              DOUBLE PRECISION,
    peak              DOUBLE PRECISION,
    cut_at            TIMESTAMPTZ,
    -- Nothing is sent before it: the destination asked for that.
    hold_until        TIMESTAMPTZ,
    -- The second that tokens were last taken of, and how many.
    window_at         TIMESTAMPTZ,
    window_taken      INT,
    -- The circuit, while it is open.
    opened_at         TIMESTAMPTZ,
    open_reason       TEXT,
    probe_interval_ms INT,
    next_probe_at     TIMESTAMPTZ,
    last_probe_id     BIGINT,
    updated_at        TIMESTAMPTZ      NOT NULL DEFAULT clock_timestamp(),
    CHECK (num_nulls(rate, peak, cut_at, window_at, window_taken) IN (0, 5)),
    CHECK (rate >= 1 AND rate <= peak),
    CHECK (hold_until IS NULL OR rate IS NOT NULL),
    CHECK (num_nulls(opened_at, open_reason, probe_interval_ms, next_probe_at) IN (0, 4)),
    CHECK (last_probe_id IS NULL OR opened_at IS NOT NULL)
) WITH (
    -- Few rows, and while one is throttled it is written by every process every second.
    fillfactor = 50,
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 100
);
