DROP TABLE IF EXISTS dlq.arrivals;
DROP TABLE IF EXISTS dlq.source_partitions;
