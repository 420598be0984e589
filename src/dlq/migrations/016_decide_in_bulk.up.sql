-- A redrive can also reopen its messages, mark them dead or delete them. `revision` counts the changes that people make
-- to a redrive; it is its ETag.
ALTER TABLE dlq.redrives
    ADD COLUMN revision BIGINT NOT NULL DEFAULT 1,
    DROP CONSTRAINT chk_redrives_kind,
    ADD CONSTRAINT chk_redrives_kind CHECK (kind IN ('retry', 'reopen', 'dead', 'delete'));

ALTER TABLE dlq.redrive_items
    DROP CONSTRAINT chk_redrive_items_outcome,
    ADD CONSTRAINT chk_redrive_items_outcome CHECK (outcome IN (
        'published', 'not_published', 'came_back', 'failed', 'unknown', 'skipped', 'cancelled', 'applied'));
