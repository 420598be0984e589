ALTER TABLE saga.saga_states_archive DROP COLUMN IF EXISTS fingerprint;
ALTER TABLE saga.saga_states DROP COLUMN IF EXISTS fingerprint;
ALTER TABLE saga.saga_step_logs_archive DROP COLUMN IF EXISTS fingerprint;
ALTER TABLE saga.saga_step_logs DROP COLUMN IF EXISTS fingerprint;
