UPDATE dlq.source_partitions SET not_records = not_records + control + aborted + gaps;
ALTER TABLE dlq.source_partitions
    DROP COLUMN log_stable_end,
    DROP COLUMN held_back_since,
    DROP COLUMN denied,
    DROP COLUMN control,
    DROP COLUMN aborted,
    DROP COLUMN gaps;
