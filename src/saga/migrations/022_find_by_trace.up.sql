-- Sagas of one trace, whose id is in the traceparent. Only sagas with a trace have an entry, and their steps do not change it.
CREATE INDEX idx_saga_states_trace_id ON saga.saga_states (substr(trace, 4, 32)) WHERE trace IS NOT NULL;
