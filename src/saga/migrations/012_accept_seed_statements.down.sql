DROP INDEX saga.idx_saga_states_unfinished;
DROP TRIGGER saga_step_logs_refuse_truncate ON saga.saga_step_logs;
DROP TRIGGER saga_states_refuse_truncate ON saga.saga_states;
DROP FUNCTION saga.refuse_truncate();
DROP TRIGGER saga_step_logs_complete_row ON saga.saga_step_logs;
DROP FUNCTION saga.complete_log_row();
