-- A definition never changes: its hash names it, and a saga keeps the one that it began with.
CREATE TABLE saga.workflow_definitions (
    hash       TEXT        PRIMARY KEY,
    name       VARCHAR(255) NOT NULL,
    definition JSONB       NOT NULL,
    created_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
);

-- Which definition new sagas of a workflow begin with.
CREATE TABLE saga.workflows (
    name         VARCHAR(255) PRIMARY KEY,
    current_hash TEXT         NOT NULL REFERENCES saga.workflow_definitions (hash),
    updated_at   TIMESTAMPTZ  NOT NULL DEFAULT clock_timestamp()
);
