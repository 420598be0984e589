-- Who answers for a redrive, and about which topics it is.
ALTER TABLE dlq.redrives
    -- Original topics and targets of its items; NULL before the plan. Roles that are narrowed to topics see a redrive if
    -- all of them are in their scope.
    ADD COLUMN topics TEXT[],
    -- Who started or resumed it last: it runs as long as they may do so.
    ADD COLUMN started_by TEXT,
    -- Who changed its options.
    ADD COLUMN editors TEXT[] NOT NULL DEFAULT '{}',
    -- Who approved it: actor, at, reason.
    ADD COLUMN approval JSONB,
    DROP CONSTRAINT chk_redrives_state,
    ADD CONSTRAINT chk_redrives_state CHECK (state IN (
        'planning', 'planned', 'awaiting_approval', 'running', 'paused', 'stopped', 'finished', 'cancelled', 'failed',
        'expired'));

-- What a person has sent or decided in bulk, for the bound without approval: redrives by their size, calls of retry-all
-- by what they retried. Entries of the last hour count, and each person's are deleted with the next one.
CREATE TABLE dlq.bulk_acts (
    id       BIGINT      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    person   TEXT        NOT NULL,
    at       TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    messages INT         NOT NULL
);
CREATE INDEX idx_bulk_acts_person ON dlq.bulk_acts (person, at);
