-- How many messages each topic has in each status, without counting a million rows for every look.
--
-- Statement triggers append one row per changed (topic, status): appending never makes two writers wait for
-- each other, as updating one shared counter would. The figure is the sum; dlq.compact_topic_counts() folds
-- the rows together. Triggers, so that rows written by hand or by other programs count too.
CREATE TABLE dlq.topic_counts (
    original_topic TEXT        NOT NULL,
    status         TEXT        NOT NULL,
    minute         TIMESTAMPTZ NOT NULL DEFAULT date_trunc('minute', clock_timestamp()),
    messages       BIGINT      NOT NULL,
    arrived        BIGINT      NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);

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

CREATE TRIGGER trg_dlq_messages_count_inserted
    AFTER INSERT ON dlq.dlq_messages
    REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION dlq.count_inserted();
CREATE TRIGGER trg_dlq_messages_count_updated
    AFTER UPDATE ON dlq.dlq_messages
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION dlq.count_updated();
CREATE TRIGGER trg_dlq_messages_count_deleted
    AFTER DELETE ON dlq.dlq_messages
    REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION dlq.count_deleted();
CREATE TRIGGER trg_dlq_messages_count_truncated
    AFTER TRUNCATE ON dlq.dlq_messages
    FOR EACH STATEMENT EXECUTE FUNCTION dlq.count_truncated();

-- Folds rows of the same topic, status and minute; what is older than an hour needs no minute any more.
CREATE OR REPLACE FUNCTION dlq.compact_topic_counts() RETURNS VOID AS $$
    WITH folded AS (
        DELETE FROM dlq.topic_counts RETURNING original_topic, status, minute, messages, arrived
    )
    INSERT INTO dlq.topic_counts (original_topic, status, minute, messages, arrived)
    SELECT original_topic, status, kept_minute, SUM(messages), SUM(arrived)
    FROM (
        SELECT original_topic, status, messages, arrived,
               CASE WHEN minute < NOW() - INTERVAL '1 hour' THEN 'epoch'::timestamptz ELSE minute END AS kept_minute
        FROM folded
    ) AS by_minute
    GROUP BY original_topic, status, kept_minute
    HAVING SUM(messages) <> 0 OR (SUM(arrived) <> 0 AND kept_minute <> 'epoch'::timestamptz);
$$ LANGUAGE sql;

INSERT INTO dlq.topic_counts (original_topic, status, minute, messages, arrived)
SELECT original_topic, status, 'epoch'::timestamptz, COUNT(*), 0
FROM dlq.dlq_messages
GROUP BY original_topic, status;
