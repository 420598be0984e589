-- dlq-db: 古い DLQ メッセージのアーカイブ管理

-- アーカイブ用テーブル
CREATE TABLE IF NOT EXISTS dlq.dlq_messages_archive (
    LIKE dlq.dlq_messages INCLUDING ALL
);

-- アーカイブ実行プロシージャ（バッチ処理対応）
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
