DROP FUNCTION saga.ask_about_unknown();
DROP FUNCTION saga.log_unknown(UUID, INT, TEXT, TEXT, TEXT);
ALTER TABLE saga.saga_states RESET (fillfactor, autovacuum_vacuum_scale_factor, autovacuum_analyze_scale_factor);
ALTER TABLE saga.saga_step_logs
    RESET (fillfactor, autovacuum_vacuum_scale_factor, autovacuum_vacuum_insert_scale_factor);
CREATE OR REPLACE TRIGGER trigger_saga_step_logs_update_updated_at BEFORE UPDATE ON saga.saga_step_logs
    FOR EACH ROW EXECUTE FUNCTION saga.update_updated_at();
ALTER TABLE saga.saga_step_logs ALTER COLUMN id SET DEFAULT gen_random_uuid();
DROP INDEX IF EXISTS saga.idx_saga_step_logs_started_at;
CREATE INDEX IF NOT EXISTS idx_saga_step_logs_started_at ON saga.saga_step_logs (started_at);
CREATE INDEX IF NOT EXISTS idx_saga_step_logs_step_name ON saga.saga_step_logs (step_name);
CREATE INDEX IF NOT EXISTS idx_saga_step_logs_status ON saga.saga_step_logs (status);
CREATE INDEX IF NOT EXISTS idx_saga_step_logs_action ON saga.saga_step_logs (action);
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
