DROP TRIGGER trg_dlq_messages_updated_at ON dlq.dlq_messages;
CREATE TRIGGER trg_dlq_messages_updated_at
    BEFORE UPDATE ON dlq.dlq_messages
    FOR EACH ROW
    EXECUTE FUNCTION dlq.update_updated_at();

CREATE OR REPLACE FUNCTION dlq.count_inserted() RETURNS TRIGGER AS $$
BEGIN
    INSERT INTO dlq.topic_counts (original_topic, status, messages, arrived)
    SELECT original_topic, status, COUNT(*), COUNT(*) FROM new_rows GROUP BY original_topic, status;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;

CREATE OR REPLACE FUNCTION dlq.count_updated() RETURNS TRIGGER AS $$
BEGIN
    INSERT INTO dlq.topic_counts (original_topic, status, messages, arrived)
    SELECT original_topic, status, SUM(change), 0
    FROM (
        SELECT original_topic, status, -1 AS change FROM old_rows
        UNION ALL
        SELECT original_topic, status, 1 AS change FROM new_rows
    ) AS changes
    GROUP BY original_topic, status
    HAVING SUM(change) <> 0;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;

CREATE OR REPLACE FUNCTION dlq.count_deleted() RETURNS TRIGGER AS $$
BEGIN
    INSERT INTO dlq.topic_counts (original_topic, status, messages, arrived)
    SELECT original_topic, status, -COUNT(*), 0 FROM old_rows GROUP BY original_topic, status;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;

CREATE OR REPLACE FUNCTION dlq.count_truncated() RETURNS TRIGGER AS $$
BEGIN
    TRUNCATE dlq.topic_counts;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;

DROP FUNCTION IF EXISTS dlq.fold_group_changes();
DROP INDEX IF EXISTS dlq.idx_dlq_messages_fingerprint;
DROP VIEW IF EXISTS dlq.group_figures;
DROP TABLE IF EXISTS dlq.group_changes;
DROP TABLE IF EXISTS dlq.group_counts;
DROP TABLE IF EXISTS dlq.fingerprints;
