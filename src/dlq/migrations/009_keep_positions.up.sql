-- How far each dead-letter partition has been read outlives this schema: a rollback to 0 saves it here, and the next
-- `migrate up` reads on from there. Otherwise every record that the broker still has would come back as PENDING, also
-- those that were resolved.
CREATE TABLE IF NOT EXISTS platform.dlq_positions (
    cluster_id  TEXT        NOT NULL,
    topic       TEXT        NOT NULL,
    topic_id    UUID        NOT NULL,
    partition   INT         NOT NULL,
    next_offset BIGINT      NOT NULL,
    stopped     BOOLEAN     NOT NULL,
    saved_at    TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (cluster_id, topic_id, partition)
);

-- The messages are gone, so the counters begin anew at the position. A partition that is known here has been read on
-- since.
INSERT INTO dlq.source_partitions
    (cluster_id, topic, topic_id, partition, first_offset, next_offset, high_offset, stopped)
SELECT cluster_id, topic, topic_id, partition, next_offset, next_offset, next_offset, stopped
FROM platform.dlq_positions
ON CONFLICT (cluster_id, topic_id, partition) DO NOTHING;
DELETE FROM platform.dlq_positions;
