-- Retry policies (dlq.auto_retry) retry messages automatically. next_attempt_at says when a PENDING message is due, and
-- retry_policy which policy retries it. Both are written after the end of an attempt by the process that looks after
-- the policies, and cleared by the next claim and by what operators do. A message without a policy has neither, and no
-- entry in the index.
ALTER TABLE dlq.dlq_messages ADD COLUMN next_attempt_at TIMESTAMPTZ, ADD COLUMN retry_policy TEXT;
ALTER TABLE dlq.dlq_messages_archive ADD COLUMN next_attempt_at TIMESTAMPTZ, ADD COLUMN retry_policy TEXT;

CREATE INDEX idx_dlq_messages_next_attempt ON dlq.dlq_messages (retry_policy, next_attempt_at, id)
    WHERE next_attempt_at IS NOT NULL;

-- The policy that made a redrive; null if a person made it. What stopped it, the last time.
ALTER TABLE dlq.redrives ADD COLUMN policy TEXT, ADD COLUMN stopped_by TEXT;
CREATE INDEX idx_redrives_policy ON dlq.redrives (policy, created_at, id) WHERE policy IS NOT NULL;
CREATE INDEX idx_redrives_by_people ON dlq.redrives (created_at, id) WHERE policy IS NULL;

-- State of the retry policies. The definition is that of the configuration of the process that looks after them.
CREATE TABLE dlq.retry_policies (
    name TEXT PRIMARY KEY,
    -- The order in the configuration: the first policy that matches a message retries it. Null: not configured any more.
    place INT,
    definition JSONB NOT NULL,
    state TEXT NOT NULL DEFAULT 'active',
    state_reason TEXT,
    state_actor TEXT,
    state_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    -- The redrive of the open round; null between two rounds.
    redrive_id UUID,
    last_redrive_id UUID,
    round_at TIMESTAMPTZ,
    failures INT NOT NULL DEFAULT 0,
    not_before TIMESTAMPTZ,
    -- How the last round ended.
    last_result TEXT,
    CONSTRAINT chk_retry_policies_state CHECK (state IN ('active', 'paused', 'disabled'))
) WITH (fillfactor = 50);

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
                      m.routed, m.next_attempt_at, m.retry_policy
        ),
        archived AS (
            INSERT INTO dlq.dlq_messages_archive
                (id, original_topic, error_message, retry_count, max_retries, payload, status,
                 created_at, updated_at, last_retry_at, source_topic, source_topic_id,
                 source_partition, source_offset, source_timestamp, message_key, raw_value,
                 headers, dialect, error_class, error_stack, consumer_group, original_partition,
                 original_offset, original_timestamp, fingerprint, unroutable, parent_id,
                 resolution, attempt_no, published_sha256, lease_owner, lease_until,
                 lease_epoch, lease_lost, source_compression, routed, next_attempt_at, retry_policy)
            SELECT id, original_topic, error_message, retry_count, max_retries, payload, status,
                   created_at, updated_at, last_retry_at, source_topic, source_topic_id,
                   source_partition, source_offset, source_timestamp, message_key, raw_value,
                   headers, dialect, error_class, error_stack, consumer_group,
                   original_partition, original_offset, original_timestamp, fingerprint,
                   unroutable, parent_id, resolution, attempt_no, published_sha256, lease_owner,
                   lease_until, lease_epoch, lease_lost, source_compression, routed,
                   next_attempt_at, retry_policy
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
