-- A bulk retry walks the sagas that wait for a person, the oldest first: their ids grow with time.
CREATE INDEX idx_saga_states_stuck ON saga.saga_states (id) WHERE needs_person;
