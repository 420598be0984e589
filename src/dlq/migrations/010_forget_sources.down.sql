ALTER TABLE dlq.source_partitions DROP COLUMN forgotten;
