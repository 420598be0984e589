ALTER TABLE saga.saga_states RENAME COLUMN setbacks TO failed_rounds;
ALTER TABLE saga.saga_states_archive RENAME COLUMN setbacks TO failed_rounds;
