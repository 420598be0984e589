CREATE INDEX IF NOT EXISTS idx_saga_step_logs_saga_id_step_index ON saga.saga_step_logs (saga_id, step_index);
DELETE FROM saga.saga_step_logs WHERE status IS NULL;
ALTER TABLE saga.saga_step_logs
    DROP CONSTRAINT uq_saga_step_logs_attempt,
    DROP CONSTRAINT chk_saga_step_logs_open,
    ALTER COLUMN status SET NOT NULL,
    DROP COLUMN attempt,
    DROP COLUMN answer,
    DROP COLUMN is_unsent,
    DROP COLUMN is_last,
    DROP COLUMN actor,
    DROP COLUMN reason;
