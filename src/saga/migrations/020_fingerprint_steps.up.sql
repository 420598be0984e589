-- What failures with the same cause have in common: of an attempt's error, and of the failure that a saga is stuck at or
-- undone for. NULL for older ones.
ALTER TABLE saga.saga_step_logs ADD COLUMN fingerprint TEXT;
ALTER TABLE saga.saga_step_logs_archive ADD COLUMN fingerprint TEXT;
ALTER TABLE saga.saga_states ADD COLUMN fingerprint TEXT;
ALTER TABLE saga.saga_states_archive ADD COLUMN fingerprint TEXT;
-- Sagas that go well are not in it, and their rows are changed in place as before.
CREATE INDEX idx_saga_states_fingerprint
    ON saga.saga_states (fingerprint, created_at DESC, id DESC) WHERE fingerprint IS NOT NULL;
