-- What its next call waits for: a service that is known to be down. The rows that are there fulfil what is checked from
-- now on; to read them all would hold up everybody.
ALTER TABLE saga.saga_states
    ADD COLUMN waiting_for   TEXT,
    ADD COLUMN waiting_since TIMESTAMPTZ,
    ADD CHECK ((waiting_for IS NULL) = (waiting_since IS NULL)) NOT VALID;
ALTER TABLE saga.saga_states_archive
    ADD COLUMN waiting_for   TEXT,
    ADD COLUMN waiting_since TIMESTAMPTZ;
-- Few, as a rule none: those that wait for one service, in the order in which they go on.
CREATE INDEX idx_saga_states_waiting ON saga.saga_states (waiting_for, waiting_since, id) WHERE waiting_for IS NOT NULL;

-- spent_ms: what an attempt and the wait after it took from the budget of its step; 0 for what costs nothing. Attempts
-- from before count as attempts.
ALTER TABLE saga.saga_step_logs
    ADD COLUMN is_down  BOOLEAN NOT NULL DEFAULT false,
    ADD COLUMN spent_ms BIGINT  NOT NULL DEFAULT 1,
    DROP CONSTRAINT saga_step_logs_answer_check,
    ADD CONSTRAINT saga_step_logs_answer_check
        CHECK (answer IN ('done', 'refused', 'defect', 'unknown', 'unserved', 'unavailable', 'not_done')) NOT VALID;
ALTER TABLE saga.saga_step_logs_archive
    ADD COLUMN is_down  BOOLEAN NOT NULL DEFAULT false,
    ADD COLUMN spent_ms BIGINT  NOT NULL DEFAULT 1;
