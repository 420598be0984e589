DROP INDEX dlq.idx_redrive_items_sha256;
DROP INDEX dlq.idx_redrive_items_place;
DROP INDEX dlq.idx_redrive_items_came_back;
DROP INDEX dlq.idx_redrive_items_in_flight;
DROP INDEX dlq.idx_redrive_items_acked;
DROP INDEX dlq.idx_redrive_items_stage;
ALTER TABLE dlq.redrive_items
    DROP COLUMN came_back_at,
    DROP COLUMN sha256,
    DROP COLUMN fingerprint;

DROP INDEX dlq.idx_redrives_watched;
ALTER TABLE dlq.redrives
    DROP COLUMN waiting_for,
    DROP COLUMN paused_at,
    DROP COLUMN counted_from,
    DROP COLUMN watched_targets;
