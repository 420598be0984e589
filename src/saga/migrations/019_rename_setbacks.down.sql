ALTER TABLE saga.saga_states_archive RENAME COLUMN failed_rounds TO setbacks;
ALTER TABLE saga.saga_states RENAME COLUMN failed_rounds TO setbacks;
