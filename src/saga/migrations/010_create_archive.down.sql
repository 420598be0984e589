DROP TRIGGER saga_states_refuse_delete ON saga.saga_states;
DROP FUNCTION saga.refuse_delete();
DROP TABLE saga.saga_step_logs_archive;
DROP TABLE saga.saga_states_archive;
