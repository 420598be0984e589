DROP TABLE dlq.bulk_acts;
UPDATE dlq.redrives SET state = 'cancelled', state_reason = 'it awaited approval', finished_at = clock_timestamp()
WHERE state = 'awaiting_approval';
ALTER TABLE dlq.redrives
    DROP COLUMN topics,
    DROP COLUMN started_by,
    DROP COLUMN editors,
    DROP COLUMN approval,
    DROP CONSTRAINT chk_redrives_state,
    ADD CONSTRAINT chk_redrives_state CHECK (state IN (
        'planning', 'planned', 'running', 'paused', 'stopped', 'finished', 'cancelled', 'failed', 'expired'));
