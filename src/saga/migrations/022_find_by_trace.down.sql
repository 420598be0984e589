DROP INDEX saga.idx_saga_states_trace_id;
