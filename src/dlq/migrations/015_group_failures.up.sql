-- Failures grouped by fingerprint, without reading a million messages for every look.
--
-- dlq.fingerprints has a row per cause: what it was grouped by, when it first and last failed. dlq.group_counts has the
-- messages of a group by topic, consumer group, status and the hour in which they changed. As with topic_counts,
-- statement triggers only append, to dlq.group_changes, so that no two writers wait for each other. The figure is the
-- sum of both tables; dlq.fold_group_changes() moves the changes into the counts.
CREATE TABLE dlq.fingerprints (
    fingerprint TEXT        PRIMARY KEY,
    version     INT,
    class       TEXT,
    template    TEXT,
    frame       TEXT,
    first_at    TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    last_at     TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX idx_dlq_fingerprints_last_at ON dlq.fingerprints (last_at, fingerprint);
-- For prefixes: the primary key is sorted by the collation of the database.
CREATE INDEX idx_dlq_fingerprints_prefix ON dlq.fingerprints (fingerprint text_pattern_ops);

CREATE TABLE dlq.group_counts (
    fingerprint    TEXT        NOT NULL,
    original_topic TEXT        NOT NULL,
    consumer_group TEXT        NOT NULL,
    status         TEXT        NOT NULL,
    hour           TIMESTAMPTZ NOT NULL,
    messages       BIGINT      NOT NULL,
    arrived        BIGINT      NOT NULL,
    PRIMARY KEY (fingerprint, original_topic, consumer_group, status, hour)
);
CREATE INDEX idx_dlq_group_counts_topic ON dlq.group_counts (original_topic, fingerprint);
CREATE INDEX idx_dlq_group_counts_hour ON dlq.group_counts (hour) WHERE hour > 'epoch';

CREATE TABLE dlq.group_changes (
    fingerprint    TEXT        NOT NULL,
    original_topic TEXT        NOT NULL,
    consumer_group TEXT        NOT NULL,
    status         TEXT        NOT NULL,
    hour           TIMESTAMPTZ NOT NULL DEFAULT date_trunc('hour', clock_timestamp(), 'UTC'),
    messages       BIGINT      NOT NULL,
    arrived        BIGINT      NOT NULL,
    first_at       TIMESTAMPTZ,
    last_at        TIMESTAMPTZ
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
CREATE INDEX idx_dlq_group_changes_fingerprint ON dlq.group_changes (fingerprint);

CREATE VIEW dlq.group_figures AS
SELECT fingerprint, original_topic, consumer_group, status, hour, messages, arrived FROM dlq.group_counts
UNION ALL
SELECT fingerprint, original_topic, consumer_group, status, hour, messages, arrived FROM dlq.group_changes;

-- The newest message of a group in each status.
CREATE INDEX idx_dlq_messages_fingerprint ON dlq.dlq_messages (fingerprint, status, created_at, id)
    WHERE fingerprint IS NOT NULL;

-- Texts are cut, so that their sum fits into an index entry.
CREATE OR REPLACE FUNCTION dlq.count_inserted() RETURNS TRIGGER AS $$
BEGIN
    WITH changes AS MATERIALIZED (
        SELECT fingerprint, original_topic, consumer_group, status, COUNT(*) AS messages,
               MIN(created_at) AS first_at, MAX(created_at) AS last_at
        FROM new_rows GROUP BY fingerprint, original_topic, consumer_group, status
    ), topics AS (
        INSERT INTO dlq.topic_counts (original_topic, status, messages, arrived)
        SELECT original_topic, status, SUM(messages), SUM(messages) FROM changes GROUP BY original_topic, status
    ), grouped AS (
        INSERT INTO dlq.group_changes
            (fingerprint, original_topic, consumer_group, status, messages, arrived, first_at, last_at)
        SELECT fingerprint, left(original_topic, 249), left(COALESCE(consumer_group, ''), 255), status, messages,
               messages, LEAST(first_at, clock_timestamp()), LEAST(last_at, clock_timestamp())
        FROM changes WHERE fingerprint IS NOT NULL
    )
    INSERT INTO dlq.fingerprints (fingerprint, first_at, last_at)
    SELECT fingerprint, LEAST(MIN(first_at), clock_timestamp()), LEAST(MAX(last_at), clock_timestamp())
    FROM changes c
    WHERE fingerprint IS NOT NULL
      AND NOT EXISTS (SELECT FROM dlq.fingerprints f WHERE f.fingerprint = c.fingerprint)
    GROUP BY fingerprint
    ORDER BY fingerprint
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;

CREATE OR REPLACE FUNCTION dlq.count_updated() RETURNS TRIGGER AS $$
BEGIN
    WITH changes AS MATERIALIZED (
        SELECT fingerprint, original_topic, consumer_group, status, SUM(change) AS messages,
               MIN(created_at) AS first_at, MAX(created_at) AS last_at
        FROM (
            SELECT fingerprint, original_topic, consumer_group, status, created_at, -1 AS change FROM old_rows
            UNION ALL
            SELECT fingerprint, original_topic, consumer_group, status, created_at, 1 AS change FROM new_rows
        ) AS both_rows
        GROUP BY fingerprint, original_topic, consumer_group, status
        HAVING SUM(change) <> 0
    ), topics AS (
        INSERT INTO dlq.topic_counts (original_topic, status, messages, arrived)
        SELECT original_topic, status, SUM(messages), 0 FROM changes
        GROUP BY original_topic, status HAVING SUM(messages) <> 0
    ), grouped AS (
        INSERT INTO dlq.group_changes
            (fingerprint, original_topic, consumer_group, status, messages, arrived, first_at, last_at)
        SELECT fingerprint, left(original_topic, 249), left(COALESCE(consumer_group, ''), 255), status, messages, 0,
               CASE WHEN messages > 0 THEN LEAST(first_at, clock_timestamp()) END,
               CASE WHEN messages > 0 THEN LEAST(last_at, clock_timestamp()) END
        FROM changes WHERE fingerprint IS NOT NULL
    )
    INSERT INTO dlq.fingerprints (fingerprint, first_at, last_at)
    SELECT fingerprint, LEAST(MIN(first_at), clock_timestamp()), LEAST(MAX(last_at), clock_timestamp())
    FROM changes c
    WHERE fingerprint IS NOT NULL AND messages > 0
      AND NOT EXISTS (SELECT FROM dlq.fingerprints f WHERE f.fingerprint = c.fingerprint)
    GROUP BY fingerprint
    ORDER BY fingerprint
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;

CREATE OR REPLACE FUNCTION dlq.count_deleted() RETURNS TRIGGER AS $$
BEGIN
    WITH changes AS MATERIALIZED (
        SELECT fingerprint, original_topic, consumer_group, status, COUNT(*) AS messages
        FROM old_rows GROUP BY fingerprint, original_topic, consumer_group, status
    ), topics AS (
        INSERT INTO dlq.topic_counts (original_topic, status, messages, arrived)
        SELECT original_topic, status, -SUM(messages), 0 FROM changes GROUP BY original_topic, status
    )
    INSERT INTO dlq.group_changes (fingerprint, original_topic, consumer_group, status, messages, arrived)
    SELECT fingerprint, left(original_topic, 249), left(COALESCE(consumer_group, ''), 255), status, -messages, 0
    FROM changes WHERE fingerprint IS NOT NULL;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;

CREATE OR REPLACE FUNCTION dlq.count_truncated() RETURNS TRIGGER AS $$
BEGIN
    TRUNCATE dlq.topic_counts, dlq.group_counts, dlq.group_changes;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;

-- Costs what has changed since the last call. Hours before the last day become one. Only one process folds at a time:
-- two would lock counts in different orders.
CREATE OR REPLACE FUNCTION dlq.fold_group_changes() RETURNS VOID AS $$
DECLARE
    v_oldest TIMESTAMPTZ := date_trunc('hour', clock_timestamp(), 'UTC') - INTERVAL '24 hours';
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtextextended('dlq.fold_group_changes', 0)) THEN
        RETURN;
    END IF;
    WITH changed AS (
        DELETE FROM dlq.group_changes
        RETURNING fingerprint, original_topic, consumer_group, status, hour, messages, arrived, first_at, last_at
    ), expired AS (
        DELETE FROM dlq.group_counts WHERE hour > 'epoch' AND hour < v_oldest
        RETURNING fingerprint, original_topic, consumer_group, status, hour, messages, arrived
    ), counted AS (
        INSERT INTO dlq.group_counts AS c
            (fingerprint, original_topic, consumer_group, status, hour, messages, arrived)
        SELECT fingerprint, original_topic, consumer_group, status, kept_hour, SUM(messages), SUM(arrived)
        FROM (
            SELECT fingerprint, original_topic, consumer_group, status, messages, arrived,
                   CASE WHEN hour < v_oldest THEN 'epoch'::timestamptz ELSE hour END AS kept_hour
            FROM (
                SELECT fingerprint, original_topic, consumer_group, status, hour, messages, arrived FROM changed
                UNION ALL
                SELECT fingerprint, original_topic, consumer_group, status, hour, messages, arrived FROM expired
            ) AS moved
        ) AS by_hour
        GROUP BY fingerprint, original_topic, consumer_group, status, kept_hour
        HAVING SUM(messages) <> 0 OR (SUM(arrived) <> 0 AND kept_hour > 'epoch')
        ON CONFLICT (fingerprint, original_topic, consumer_group, status, hour)
        DO UPDATE SET messages = c.messages + EXCLUDED.messages, arrived = c.arrived + EXCLUDED.arrived
    ), seen AS (
        SELECT fingerprint, MIN(first_at) AS first_at, MAX(last_at) AS last_at FROM changed GROUP BY fingerprint
    )
    UPDATE dlq.fingerprints f
    SET first_at = LEAST(f.first_at, seen.first_at), last_at = GREATEST(f.last_at, seen.last_at)
    FROM seen
    WHERE f.fingerprint = seen.fingerprint AND (seen.first_at < f.first_at OR seen.last_at > f.last_at);
END;
$$ LANGUAGE plpgsql;

-- Deriving fingerprints again is no change of a message.
DROP TRIGGER trg_dlq_messages_updated_at ON dlq.dlq_messages;
CREATE TRIGGER trg_dlq_messages_updated_at
    BEFORE UPDATE ON dlq.dlq_messages
    FOR EACH ROW
    WHEN (current_setting('dlq.deriving_fingerprints', true) IS DISTINCT FROM 'on')
    EXECUTE FUNCTION dlq.update_updated_at();

INSERT INTO dlq.group_counts (fingerprint, original_topic, consumer_group, status, hour, messages, arrived)
SELECT fingerprint, left(original_topic, 249), left(COALESCE(consumer_group, ''), 255), status, 'epoch'::timestamptz,
       COUNT(*), 0
FROM dlq.dlq_messages WHERE fingerprint IS NOT NULL
GROUP BY 1, 2, 3, 4;
INSERT INTO dlq.fingerprints (fingerprint, first_at, last_at)
SELECT fingerprint, LEAST(MIN(created_at), clock_timestamp()), LEAST(MAX(created_at), clock_timestamp())
FROM dlq.dlq_messages WHERE fingerprint IS NOT NULL
GROUP BY fingerprint;
