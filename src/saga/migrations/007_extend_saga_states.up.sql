ALTER TABLE saga.saga_states
    ALTER COLUMN id SET DEFAULT platform.new_id(),
    ADD COLUMN definition_hash TEXT        REFERENCES saga.workflow_definitions (hash),
    -- What the steps that are done have answered, by their names.
    ADD COLUMN step_outputs    JSONB       NOT NULL DEFAULT '{}',
    -- When it is to be looked at; NULL while a worker has it, while it waits for a person, and at its end.
    ADD COLUMN wake_at         TIMESTAMPTZ,
    ADD COLUMN deadline_at     TIMESTAMPTZ,
    -- Whether whoever settled last knew the deadline to be over.
    ADD COLUMN deadline_over   BOOLEAN     NOT NULL DEFAULT false,
    -- The open attempt was answered `working`: how often so far, and how many polls since have failed in a row.
    ADD COLUMN polls           INT,
    ADD COLUMN failed_polls    INT,
    -- Set once, by a person; the settle of whoever runs the saga takes notice of it.
    ADD COLUMN abort_requested TEXT        CHECK (abort_requested IN ('cancel', 'compensate')),
    ADD COLUMN abort_actor     TEXT,
    ADD COLUMN abort_reason    TEXT,
    ADD COLUMN abort_at        TIMESTAMPTZ,
    -- The point of no return has been passed: the first attempt of the pivot was opened.
    ADD COLUMN pivot_opened    BOOLEAN     NOT NULL DEFAULT false,
    ADD COLUMN compensation    TEXT        NOT NULL DEFAULT 'none'
               CHECK (compensation IN ('none', 'running', 'done', 'stuck', 'resolved')),
    ADD COLUMN needs_person    BOOLEAN     NOT NULL DEFAULT false,
    ADD COLUMN stuck_step      INT,
    ADD COLUMN stuck_op        TEXT        CHECK (stuck_op IN ('EXECUTE', 'COMPENSATE')),
    ADD COLUMN stuck_reason    TEXT,
    ADD COLUMN trace           TEXT,
    ADD COLUMN lease_owner     TEXT,
    ADD COLUMN lease_until     TIMESTAMPTZ,
    ADD COLUMN lease_epoch     BIGINT      NOT NULL DEFAULT 0,
    ADD COLUMN lease_lost      BOOLEAN     NOT NULL DEFAULT false,
    -- How often in a row its process was lost with it or could not deal with it; an answer ends the row.
    ADD COLUMN setbacks        INT         NOT NULL DEFAULT 0,
    -- It may take its process down, or has one attempt left after that: nothing else is to run beside it.
    ADD COLUMN runs_alone      BOOLEAN     NOT NULL DEFAULT false,
    ADD CHECK ((polls IS NULL) = (failed_polls IS NULL)),
    ADD CHECK (needs_person = (stuck_step IS NOT NULL)),
    ADD CHECK (NOT needs_person OR status IN ('RUNNING', 'COMPENSATING'));

-- Exactly the order of the claim.
CREATE INDEX idx_saga_states_wake ON saga.saga_states (wake_at, id) WHERE wake_at IS NOT NULL;
CREATE INDEX idx_saga_states_wake_alone ON saga.saga_states (wake_at, id) WHERE runs_alone AND wake_at IS NOT NULL;
-- For whoever looks after lost workers; never more rows than are under way.
CREATE INDEX idx_saga_states_leased ON saga.saga_states (id) WHERE lease_owner IS NOT NULL;
CREATE INDEX idx_saga_states_needs_person ON saga.saga_states (created_at DESC, id) WHERE needs_person;

-- What the status says, as far as it is worth an index entry (decision 0053). A saga that is begun becomes RUNNING with
-- its first call and stays in its phase, so that its row is changed in place: NEW until it is claimed for the first
-- time, FORWARD while it is STARTED or RUNNING after that, and then as its status.
ALTER TABLE saga.saga_states ADD COLUMN phase TEXT NOT NULL GENERATED ALWAYS AS (
    CASE
        WHEN status = 'STARTED' AND lease_epoch = 0 THEN 'NEW'
        WHEN status IN ('STARTED', 'RUNNING') THEN 'FORWARD'
        ELSE status
    END) STORED;
DROP INDEX IF EXISTS saga.idx_saga_states_status;
CREATE INDEX idx_saga_states_status ON saga.saga_states (phase);
-- What nobody here can run and nobody was asked about; none, as a rule.
CREATE INDEX idx_saga_states_unknown ON saga.saga_states (id)
    WHERE definition_hash IS NULL AND NOT needs_person AND phase IN ('NEW', 'FORWARD', 'COMPENSATING');

-- Our own statements say when a row was changed: a trigger would be run for each of them. It is for all others.
CREATE OR REPLACE TRIGGER update_saga_states_updated_at BEFORE UPDATE ON saga.saga_states
    FOR EACH ROW WHEN (NEW.updated_at = OLD.updated_at)
    EXECUTE FUNCTION saga.update_updated_at();
