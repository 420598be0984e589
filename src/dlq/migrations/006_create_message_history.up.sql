-- Every transition of a message: when, who, why, from, to, and where it was published. No foreign key: the
-- history outlives a deleted message.
CREATE TABLE dlq.message_history (
    id          BIGINT      GENERATED ALWAYS AS IDENTITY,
    message_id  UUID        NOT NULL,
    at          TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    event       TEXT        NOT NULL,
    actor       TEXT        NOT NULL,
    reason      TEXT,
    status_from TEXT,
    status_to   TEXT,
    retry_count INT         NOT NULL,
    attempt_no  INT         NOT NULL,
    lease_epoch BIGINT      NOT NULL,
    topic       TEXT,
    partition   INT,
    "offset"    BIGINT,
    detail      TEXT,
    PRIMARY KEY (message_id, id)
);

-- Removes archived messages after their last keep. Their coordinates stay known, so that reading the topic
-- again does not bring them back; their history goes with them.
CREATE OR REPLACE PROCEDURE dlq.purge_archived_dlq_messages(
    p_purge_days INT DEFAULT 365,
    p_batch_size INT DEFAULT 1000
)
LANGUAGE plpgsql
AS $$
DECLARE
    v_cutoff TIMESTAMPTZ;
    v_purged_count INT := 0;
    v_batch_count INT;
    v_after_created TIMESTAMPTZ := '-infinity';
    v_after_id UUID := '00000000-0000-0000-0000-000000000000';
BEGIN
    v_cutoff := NOW() - (p_purge_days || ' days')::INTERVAL;

    LOOP
        -- In one pass over the table, however many batches it takes.
        WITH to_purge AS (
            SELECT id FROM dlq.dlq_messages_archive
            WHERE updated_at < v_cutoff
              AND (created_at, id) > (v_after_created, v_after_id)
            ORDER BY created_at, id
            LIMIT p_batch_size
            FOR UPDATE SKIP LOCKED
        ),
        purged AS (
            DELETE FROM dlq.dlq_messages_archive a
            USING to_purge tp
            WHERE a.id = tp.id
            RETURNING a.id, a.created_at, a.source_topic_id, a.source_partition, a.source_offset
        ),
        remembered AS (
            INSERT INTO dlq.arrivals (topic_id, partition, "offset", message_id, kind)
            SELECT source_topic_id, source_partition, source_offset, id, 'purged'
            FROM purged
            WHERE source_topic_id IS NOT NULL
            ON CONFLICT DO NOTHING
        ),
        forgotten AS (
            DELETE FROM dlq.message_history h
            USING purged p
            WHERE h.message_id = p.id
        )
        SELECT COUNT(*),
               (ARRAY_AGG(created_at ORDER BY created_at DESC, id DESC))[1],
               (ARRAY_AGG(id ORDER BY created_at DESC, id DESC))[1]
        INTO v_batch_count, v_after_created, v_after_id
        FROM purged;

        v_purged_count := v_purged_count + v_batch_count;
        EXIT WHEN v_batch_count = 0;
        COMMIT;
    END LOOP;

    -- What lies below the log start can never be read again and need not be recognised. A topic that is merely
    -- not listed any more may come back.
    LOOP
        DELETE FROM dlq.arrivals
        WHERE ctid = ANY(ARRAY(
            SELECT a.ctid
            FROM dlq.arrivals a
            JOIN dlq.source_partitions p ON p.topic_id = a.topic_id AND p.partition = a.partition
            WHERE a."offset" < p.log_start
            LIMIT p_batch_size
        ));
        GET DIAGNOSTICS v_batch_count = ROW_COUNT;
        EXIT WHEN v_batch_count = 0;
        COMMIT;
    END LOOP;

    RAISE NOTICE 'Purged % archived DLQ messages older than % days', v_purged_count, p_purge_days;
END;
$$;
