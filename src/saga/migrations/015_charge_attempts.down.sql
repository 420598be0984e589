ALTER TABLE saga.saga_step_logs_archive DROP COLUMN is_down, DROP COLUMN spent_ms;
UPDATE saga.saga_step_logs SET answer = 'defect' WHERE answer = 'unavailable';
ALTER TABLE saga.saga_step_logs
    DROP COLUMN is_down,
    DROP COLUMN spent_ms,
    DROP CONSTRAINT saga_step_logs_answer_check,
    ADD CONSTRAINT saga_step_logs_answer_check
        CHECK (answer IN ('done', 'refused', 'defect', 'unknown', 'unserved', 'not_done'));
UPDATE saga.saga_states SET wake_at = clock_timestamp()
WHERE waiting_for IS NOT NULL AND lease_owner IS NULL AND wake_at IS NOT NULL;
ALTER TABLE saga.saga_states_archive DROP COLUMN waiting_for, DROP COLUMN waiting_since;
DROP INDEX IF EXISTS saga.idx_saga_states_waiting;
ALTER TABLE saga.saga_states DROP COLUMN waiting_for, DROP COLUMN waiting_since;
