-- A partition that is being read again from an earlier offset is read on from there: what lies before the position was
-- stored, what lies behind it may not have been. The table stays when the schema goes.
INSERT INTO platform.dlq_positions (cluster_id, topic, topic_id, partition, next_offset, stopped)
SELECT cluster_id, topic, topic_id, partition,
       CASE WHEN backfill_until IS NULL THEN high_offset ELSE next_offset END, stopped
FROM dlq.source_partitions
ON CONFLICT (cluster_id, topic_id, partition) DO UPDATE
SET topic = EXCLUDED.topic, next_offset = EXCLUDED.next_offset, stopped = EXCLUDED.stopped, saved_at = EXCLUDED.saved_at;
