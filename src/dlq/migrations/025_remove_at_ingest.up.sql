-- Parts of a message that a rule with drop_at_ingest changed before it was stored: key, value, headers, error. Without
-- its key, value or headers it is not what was sent, so it is not published until an edit has given them again.
ALTER TABLE dlq.dlq_messages ADD COLUMN removed_parts TEXT[];
ALTER TABLE dlq.dlq_messages_archive ADD COLUMN removed_parts TEXT[];
ALTER TABLE dlq.message_versions ADD COLUMN removed_parts TEXT[];

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
                      m.routed, m.next_attempt_at, m.retry_policy, m.version, m.data_key, m.key_hmac,
                      m.record_hmac, m.removed_parts
        ),
        archived AS (
            INSERT INTO dlq.dlq_messages_archive
                (id, original_topic, error_message, retry_count, max_retries, payload, status,
                 created_at, updated_at, last_retry_at, source_topic, source_topic_id,
                 source_partition, source_offset, source_timestamp, message_key, raw_value,
                 headers, dialect, error_class, error_stack, consumer_group, original_partition,
                 original_offset, original_timestamp, fingerprint, unroutable, parent_id,
                 resolution, attempt_no, published_sha256, lease_owner, lease_until,
                 lease_epoch, lease_lost, source_compression, routed, next_attempt_at, retry_policy, version,
                 data_key, key_hmac, record_hmac, removed_parts)
            SELECT id, original_topic, error_message, retry_count, max_retries, payload, status,
                   created_at, updated_at, last_retry_at, source_topic, source_topic_id,
                   source_partition, source_offset, source_timestamp, message_key, raw_value,
                   headers, dialect, error_class, error_stack, consumer_group,
                   original_partition, original_offset, original_timestamp, fingerprint,
                   unroutable, parent_id, resolution, attempt_no, published_sha256, lease_owner,
                   lease_until, lease_epoch, lease_lost, source_compression, routed,
                   next_attempt_at, retry_policy, version, data_key, key_hmac, record_hmac,
                   removed_parts
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
