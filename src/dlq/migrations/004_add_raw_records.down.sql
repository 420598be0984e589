-- Back to the archive procedure, the indexes and the columns of 003.

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
BEGIN
    v_cutoff := NOW() - (p_retention_days || ' days')::INTERVAL;

    LOOP
        -- One statement moves the rows: what it deletes is what it archives. Choosing them twice, once to
        -- insert and once to delete, loses rows that were locked by somebody else at the first choice.
        WITH to_archive AS (
            SELECT id FROM dlq.dlq_messages
            WHERE status IN ('RESOLVED', 'DEAD')
              AND updated_at < v_cutoff
            LIMIT p_batch_size
            FOR UPDATE SKIP LOCKED
        ),
        moved AS (
            DELETE FROM dlq.dlq_messages m
            USING to_archive ta
            WHERE m.id = ta.id
            RETURNING m.id, m.original_topic, m.error_message, m.retry_count, m.max_retries, m.payload,
                      m.status, m.created_at, m.updated_at, m.last_retry_at
        ),
        archived AS (
            INSERT INTO dlq.dlq_messages_archive
                (id, original_topic, error_message, retry_count, max_retries, payload,
                 status, created_at, updated_at, last_retry_at)
            SELECT id, original_topic, error_message, retry_count, max_retries, payload,
                   status, created_at, updated_at, last_retry_at
            FROM moved
            RETURNING 1
        )
        SELECT COUNT(*) INTO v_batch_count FROM archived;

        v_archived_count := v_archived_count + v_batch_count;
        EXIT WHEN v_batch_count = 0;
        COMMIT;
    END LOOP;

    RAISE NOTICE 'Archived % DLQ messages older than % days', v_archived_count, p_retention_days;
END;
$$;

ALTER TABLE dlq.dlq_messages RESET (
    autovacuum_vacuum_scale_factor,
    autovacuum_vacuum_insert_scale_factor,
    autovacuum_analyze_scale_factor
);

DROP INDEX dlq.idx_dlq_messages_created_at;
DROP INDEX dlq.idx_dlq_messages_status;
DROP INDEX dlq.idx_dlq_messages_source_topic;
DROP INDEX dlq.idx_dlq_messages_original_topic;
CREATE INDEX idx_dlq_messages_original_topic ON dlq.dlq_messages (original_topic);
CREATE INDEX idx_dlq_messages_status ON dlq.dlq_messages (status);
CREATE INDEX idx_dlq_messages_created_at ON dlq.dlq_messages (created_at);
DROP INDEX dlq.idx_dlq_messages_archive_source;
DROP INDEX dlq.uq_dlq_messages_source;

ALTER TABLE dlq.dlq_messages_archive
    DROP COLUMN lease_lost,
    DROP COLUMN lease_epoch,
    DROP COLUMN lease_until,
    DROP COLUMN lease_owner,
    DROP COLUMN published_sha256,
    DROP COLUMN attempt_no,
    DROP COLUMN resolution,
    DROP COLUMN parent_id,
    DROP COLUMN unroutable,
    DROP COLUMN fingerprint,
    DROP COLUMN original_timestamp,
    DROP COLUMN original_offset,
    DROP COLUMN original_partition,
    DROP COLUMN consumer_group,
    DROP COLUMN error_stack,
    DROP COLUMN error_class,
    DROP COLUMN dialect,
    DROP COLUMN headers,
    DROP COLUMN raw_value,
    DROP COLUMN message_key,
    DROP COLUMN source_timestamp,
    DROP COLUMN source_offset,
    DROP COLUMN source_partition,
    DROP COLUMN source_topic_id,
    DROP COLUMN source_topic;

ALTER TABLE dlq.dlq_messages
    DROP COLUMN lease_lost,
    DROP COLUMN lease_epoch,
    DROP COLUMN lease_until,
    DROP COLUMN lease_owner,
    DROP COLUMN published_sha256,
    DROP COLUMN attempt_no,
    DROP COLUMN resolution,
    DROP COLUMN parent_id,
    DROP COLUMN unroutable,
    DROP COLUMN fingerprint,
    DROP COLUMN original_timestamp,
    DROP COLUMN original_offset,
    DROP COLUMN original_partition,
    DROP COLUMN consumer_group,
    DROP COLUMN error_stack,
    DROP COLUMN error_class,
    DROP COLUMN dialect,
    DROP COLUMN headers,
    DROP COLUMN raw_value,
    DROP COLUMN message_key,
    DROP COLUMN source_timestamp,
    DROP COLUMN source_offset,
    DROP COLUMN source_partition,
    DROP COLUMN source_topic_id,
    DROP COLUMN source_topic;
