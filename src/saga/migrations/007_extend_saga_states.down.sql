CREATE OR REPLACE TRIGGER update_saga_states_updated_at BEFORE UPDATE ON saga.saga_states
    FOR EACH ROW EXECUTE FUNCTION saga.update_updated_at();
DROP INDEX saga.idx_saga_states_unknown;
DROP INDEX saga.idx_saga_states_status;
CREATE INDEX idx_saga_states_status ON saga.saga_states (status);
DROP INDEX saga.idx_saga_states_needs_person;
DROP INDEX saga.idx_saga_states_leased;
DROP INDEX saga.idx_saga_states_wake_alone;
DROP INDEX saga.idx_saga_states_wake;
ALTER TABLE saga.saga_states
    ALTER COLUMN id SET DEFAULT gen_random_uuid(),
    DROP COLUMN phase,
    DROP COLUMN definition_hash,
    DROP COLUMN step_outputs,
    DROP COLUMN wake_at,
    DROP COLUMN deadline_at,
    DROP COLUMN deadline_over,
    DROP COLUMN polls,
    DROP COLUMN failed_polls,
    DROP COLUMN abort_requested,
    DROP COLUMN abort_actor,
    DROP COLUMN abort_reason,
    DROP COLUMN abort_at,
    DROP COLUMN pivot_opened,
    DROP COLUMN compensation,
    DROP COLUMN needs_person,
    DROP COLUMN stuck_step,
    DROP COLUMN stuck_op,
    DROP COLUMN stuck_reason,
    DROP COLUMN trace,
    DROP COLUMN lease_owner,
    DROP COLUMN lease_until,
    DROP COLUMN lease_epoch,
    DROP COLUMN lease_lost,
    DROP COLUMN setbacks,
    DROP COLUMN runs_alone;
