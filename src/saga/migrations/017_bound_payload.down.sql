DROP TRIGGER saga_states_bound_payload ON saga.saga_states;
