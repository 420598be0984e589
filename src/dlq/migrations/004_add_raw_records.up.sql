-- The raw record, where it came from, what its headers tell, and the lease of a running retry.
--
-- Raw bytes are the truth; payload, error and the rest are derived from them and can be derived again.
-- `source_topic IS NULL` marks a row that was inserted without raw bytes: its value is payload::text.
-- Every column is nullable or has a default, so an INSERT of the first ten columns keeps working.

ALTER TABLE dlq.dlq_messages
    ADD COLUMN source_topic       TEXT,
    ADD COLUMN source_topic_id    UUID,
    ADD COLUMN source_partition   INT,
    ADD COLUMN source_offset      BIGINT,
    ADD COLUMN source_timestamp   TIMESTAMPTZ,
    ADD COLUMN message_key        BYTEA,
    ADD COLUMN raw_value          BYTEA,
    ADD COLUMN headers            JSONB,
    ADD COLUMN dialect            TEXT,
    ADD COLUMN error_class        TEXT,
    ADD COLUMN error_stack        TEXT,
    ADD COLUMN consumer_group     TEXT,
    ADD COLUMN original_partition INT,
    ADD COLUMN original_offset    BIGINT,
    ADD COLUMN original_timestamp TIMESTAMPTZ,
    ADD COLUMN fingerprint        TEXT,
    ADD COLUMN unroutable         BOOLEAN NOT NULL DEFAULT false,
    ADD COLUMN parent_id          UUID,
    ADD COLUMN resolution         TEXT,
    ADD COLUMN attempt_no         INT NOT NULL DEFAULT 0,
    ADD COLUMN published_sha256   BYTEA,
    ADD COLUMN lease_owner        TEXT,
    ADD COLUMN lease_until        TIMESTAMPTZ,
    ADD COLUMN lease_epoch        BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN lease_lost         BOOLEAN NOT NULL DEFAULT false;

ALTER TABLE dlq.dlq_messages_archive
    ADD COLUMN source_topic       TEXT,
    ADD COLUMN source_topic_id    UUID,
    ADD COLUMN source_partition   INT,
    ADD COLUMN source_offset      BIGINT,
    ADD COLUMN source_timestamp   TIMESTAMPTZ,
    ADD COLUMN message_key        BYTEA,
    ADD COLUMN raw_value          BYTEA,
    ADD COLUMN headers            JSONB,
    ADD COLUMN dialect            TEXT,
    ADD COLUMN error_class        TEXT,
    ADD COLUMN error_stack        TEXT,
    ADD COLUMN consumer_group     TEXT,
    ADD COLUMN original_partition INT,
    ADD COLUMN original_offset    BIGINT,
    ADD COLUMN original_timestamp TIMESTAMPTZ,
    ADD COLUMN fingerprint        TEXT,
    ADD COLUMN unroutable         BOOLEAN NOT NULL DEFAULT false,
    ADD COLUMN parent_id          UUID,
    ADD COLUMN resolution         TEXT,
    ADD COLUMN attempt_no         INT NOT NULL DEFAULT 0,
    ADD COLUMN published_sha256   BYTEA,
    ADD COLUMN lease_owner        TEXT,
    ADD COLUMN lease_until        TIMESTAMPTZ,
    ADD COLUMN lease_epoch        BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN lease_lost         BOOLEAN NOT NULL DEFAULT false;

-- A record is stored once: these are the coordinates of its first arrival. The topic id differs when a topic
-- was deleted and made again, so its records are not mistaken for old ones.
CREATE UNIQUE INDEX uq_dlq_messages_source ON dlq.dlq_messages (source_topic_id, source_partition, source_offset);
CREATE INDEX idx_dlq_messages_archive_source
    ON dlq.dlq_messages_archive (source_topic_id, source_partition, source_offset);

-- The same indexes by name, widened to the order in which lists and claims read.
DROP INDEX IF EXISTS dlq.idx_dlq_messages_original_topic;
DROP INDEX IF EXISTS dlq.idx_dlq_messages_status;
DROP INDEX IF EXISTS dlq.idx_dlq_messages_created_at;
CREATE INDEX idx_dlq_messages_original_topic ON dlq.dlq_messages (original_topic, status, created_at, id);
CREATE INDEX idx_dlq_messages_source_topic
    ON dlq.dlq_messages (source_topic, status, created_at, id) INCLUDE (original_topic);
CREATE INDEX idx_dlq_messages_status ON dlq.dlq_messages (status, created_at, id);
CREATE INDEX idx_dlq_messages_created_at ON dlq.dlq_messages (created_at, id);

-- A retry writes each row twice; the default of 20 % dead rows comes far too late for a large table.
ALTER TABLE dlq.dlq_messages SET (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.05,
    autovacuum_analyze_scale_factor = 0.02
);

CREATE OR REPLACE PROCEDURE dlq.archive_old_dlq_messages(
    p_retention_days INT DEFAULT 30,
    p_batch_size INT DEFAULT 1000
)
LANGUAGE plpgsql
AS $$
DECLARE
    v_cutoff TIMESTAMPTZ;
    v_archived_count INT := 0;
    v_batch_count INT;
    v_after_created TIMESTAMPTZ := '-infinity';
    v_after_id UUID := '00000000-0000-0000-0000-000000000000';
BEGIN
    v_cutoff := NOW() - (p_retention_days || ' days')::INTERVAL;

    LOOP
        -- One statement moves the rows: what it deletes is what it archives. Each batch begins behind the one
        -- before, so all of them together are one pass over the table.
        WITH to_archive AS (
            SELECT id FROM dlq.dlq_messages
            WHERE status IN ('RESOLVED', 'DEAD')
              AND updated_at < v_cutoff
              AND (created_at, id) > (v_after_created, v_after_id)
            ORDER BY created_at, id
            LIMIT p_batch_size
            FOR UPDATE SKIP LOCKED
        ),
        moved AS (
            DELETE FROM dlq.dlq_messages m
            USING to_archive ta
            WHERE m.id = ta.id
            RETURNING m.id, m.original_topic, m.error_message, m.retry_count, m.max_retries,
                      m.payload, m.status, m.created_at, m.updated_at, m.last_retry_at,
                      m.source_topic, m.source_topic_id, m.source_partition, m.source_offset,
                      m.source_timestamp, m.message_key, m.raw_value, m.headers, m.dialect,
                      m.error_class, m.error_stack, m.consumer_group, m.original_partition,
                      m.original_offset, m.original_timestamp, m.fingerprint, m.unroutable,
                      m.parent_id, m.resolution, m.attempt_no, m.published_sha256,
                      m.lease_owner, m.lease_until, m.lease_epoch, m.lease_lost
        ),
        archived AS (
            INSERT INTO dlq.dlq_messages_archive
                (id, original_topic, error_message, retry_count, max_retries, payload, status,
                 created_at, updated_at, last_retry_at, source_topic, source_topic_id,
                 source_partition, source_offset, source_timestamp, message_key, raw_value,
                 headers, dialect, error_class, error_stack, consumer_group, original_partition,
                 original_offset, original_timestamp, fingerprint, unroutable, parent_id,
                 resolution, attempt_no, published_sha256, lease_owner, lease_until,
                 lease_epoch, lease_lost)
            SELECT id, original_topic, error_message, retry_count, max_retries, payload, status,
                   created_at, updated_at, last_retry_at, source_topic, source_topic_id,
                   source_partition, source_offset, source_timestamp, message_key, raw_value,
                   headers, dialect, error_class, error_stack, consumer_group,
                   original_partition, original_offset, original_timestamp, fingerprint,
                   unroutable, parent_id, resolution, attempt_no, published_sha256, lease_owner,
                   lease_until, lease_epoch, lease_lost
            FROM moved
            RETURNING created_at, id
        )
        SELECT COUNT(*),
               (ARRAY_AGG(created_at ORDER BY created_at DESC, id DESC))[1],
               (ARRAY_AGG(id ORDER BY created_at DESC, id DESC))[1]
        INTO v_batch_count, v_after_created, v_after_id
        FROM archived;

        v_archived_count := v_archived_count + v_batch_count;
        EXIT WHEN v_batch_count = 0;
        COMMIT;
    END LOOP;

    RAISE NOTICE 'Archived % DLQ messages older than % days', v_archived_count, p_retention_days;
END;
$$;
