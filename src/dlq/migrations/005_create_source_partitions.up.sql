-- Where each dead-letter partition has been read to, and who reads it now.
--
-- A partition is claimed like any other work. Its position moves in the transaction that stores the rows,
-- fenced by the lease's epoch, so every record is stored exactly once. The counters are kept in the same
-- transaction and add up:
--   high_offset - first_offset = stored + reopened + folded + not_records + lost
-- (while records before the first position are being read, less what is still to read up to backfill_until).
CREATE TABLE dlq.source_partitions (
    id             BIGINT      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    cluster_id     TEXT        NOT NULL,
    topic          TEXT        NOT NULL,
    topic_id       UUID        NOT NULL,
    partition      INT         NOT NULL,
    first_offset   BIGINT      NOT NULL,
    next_offset    BIGINT      NOT NULL,
    high_offset    BIGINT      NOT NULL,
    backfill_until BIGINT,
    log_start      BIGINT,
    log_end        BIGINT,
    stored         BIGINT      NOT NULL DEFAULT 0,
    reopened       BIGINT      NOT NULL DEFAULT 0,
    folded         BIGINT      NOT NULL DEFAULT 0,
    not_records    BIGINT      NOT NULL DEFAULT 0,
    lost           BIGINT      NOT NULL DEFAULT 0,
    reread         BIGINT      NOT NULL DEFAULT 0,
    last_error     TEXT,
    last_error_at  TIMESTAMPTZ,
    gone           BOOLEAN     NOT NULL DEFAULT false,
    stopped        BOOLEAN     NOT NULL DEFAULT false,
    created_at     TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    stored_at      TIMESTAMPTZ,
    last_seek      JSONB,
    lease_owner    TEXT,
    lease_until    TIMESTAMPTZ,
    lease_epoch    BIGINT      NOT NULL DEFAULT 0,
    lease_lost     BOOLEAN     NOT NULL DEFAULT false,
    CONSTRAINT uq_source_partitions UNIQUE (cluster_id, topic_id, partition),
    CONSTRAINT chk_source_partitions_offsets CHECK (first_offset <= high_offset AND next_offset <= high_offset)
);

-- Arrivals that made no row of their own, and first arrivals whose row was deleted or purged. With the rows'
-- own coordinates this is every record ever taken, so reading a topic again never duplicates one.
CREATE TABLE dlq.arrivals (
    topic_id   UUID        NOT NULL,
    partition  INT         NOT NULL,
    "offset"   BIGINT      NOT NULL,
    message_id UUID        NOT NULL,
    kind       TEXT        NOT NULL,
    at         TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (topic_id, partition, "offset"),
    CONSTRAINT chk_arrivals_kind CHECK (kind IN ('reopened', 'repeated', 'late_failure', 'deleted', 'purged'))
);
