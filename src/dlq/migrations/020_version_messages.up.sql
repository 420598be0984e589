-- Edits. dlq.message_versions has every version of an edited message: 0 is the record as it arrived, the highest is what
-- its row in dlq.dlq_messages has, and what a retry publishes. A message that was never edited has no versions here.
ALTER TABLE dlq.dlq_messages ADD COLUMN version INT NOT NULL DEFAULT 0;
ALTER TABLE dlq.dlq_messages_archive ADD COLUMN version INT NOT NULL DEFAULT 0;

CREATE TABLE dlq.message_versions (
    message_id   UUID        NOT NULL,
    version      INT         NOT NULL,
    key          BYTEA,
    value        BYTEA,
    headers      JSONB,
    target       TEXT        NOT NULL,
    actor        TEXT        NOT NULL,
    reason       TEXT,
    created_at   TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    -- For lists, which do not read the values.
    value_sha256 BYTEA       GENERATED ALWAYS AS (sha256(value)) STORED,
    PRIMARY KEY (message_id, version)
);

-- The version that an attempt was about to publish, in its retry_started row, and the version that an edit made.
-- NULL is the original.
ALTER TABLE dlq.message_history ADD COLUMN version INT;

-- Versions live as long as their message, live or archived, whoever deletes it. A message that is moved between the two
-- tables is there when the statement ends.
CREATE FUNCTION dlq.forget_versions() RETURNS TRIGGER AS $$
DECLARE
    v_ids UUID[] := ARRAY(SELECT id FROM old_rows WHERE version > 0);
BEGIN
    IF cardinality(v_ids) > 0 THEN
        DELETE FROM dlq.message_versions v
        WHERE v.message_id = ANY(v_ids)
          AND NOT EXISTS (SELECT FROM dlq.dlq_messages m WHERE m.id = v.message_id)
          AND NOT EXISTS (SELECT FROM dlq.dlq_messages_archive a WHERE a.id = v.message_id);
    END IF;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;

CREATE TRIGGER trg_dlq_messages_forget_versions
    AFTER DELETE ON dlq.dlq_messages
    REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION dlq.forget_versions();
CREATE TRIGGER trg_dlq_messages_archive_forget_versions
    AFTER DELETE ON dlq.dlq_messages_archive
    REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION dlq.forget_versions();

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
                      m.lease_owner, m.lease_until, m.lease_epoch, m.lease_lost, m.source_compression,
                      m.routed, m.next_attempt_at, m.retry_policy, m.version
        ),
        archived AS (
            INSERT INTO dlq.dlq_messages_archive
                (id, original_topic, error_message, retry_count, max_retries, payload, status,
                 created_at, updated_at, last_retry_at, source_topic, source_topic_id,
                 source_partition, source_offset, source_timestamp, message_key, raw_value,
                 headers, dialect, error_class, error_stack, consumer_group, original_partition,
                 original_offset, original_timestamp, fingerprint, unroutable, parent_id,
                 resolution, attempt_no, published_sha256, lease_owner, lease_until,
                 lease_epoch, lease_lost, source_compression, routed, next_attempt_at, retry_policy, version)
            SELECT id, original_topic, error_message, retry_count, max_retries, payload, status,
                   created_at, updated_at, last_retry_at, source_topic, source_topic_id,
                   source_partition, source_offset, source_timestamp, message_key, raw_value,
                   headers, dialect, error_class, error_stack, consumer_group,
                   original_partition, original_offset, original_timestamp, fingerprint,
                   unroutable, parent_id, resolution, attempt_no, published_sha256, lease_owner,
                   lease_until, lease_epoch, lease_lost, source_compression, routed,
                   next_attempt_at, retry_policy, version
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
