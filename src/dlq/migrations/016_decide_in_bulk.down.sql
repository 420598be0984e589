DELETE FROM dlq.redrive_items i USING dlq.redrives r WHERE r.id = i.redrive_id AND r.kind <> 'retry';
DELETE FROM dlq.redrives WHERE kind <> 'retry';

ALTER TABLE dlq.redrive_items
    DROP CONSTRAINT chk_redrive_items_outcome,
    ADD CONSTRAINT chk_redrive_items_outcome CHECK (outcome IN (
        'published', 'not_published', 'came_back', 'failed', 'unknown', 'skipped', 'cancelled'));

ALTER TABLE dlq.redrives
    DROP COLUMN revision,
    DROP CONSTRAINT chk_redrives_kind,
    ADD CONSTRAINT chk_redrives_kind CHECK (kind IN ('retry'));
