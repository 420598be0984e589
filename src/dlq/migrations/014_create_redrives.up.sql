-- A redrive is a planned bulk retry: a frozen selection of messages, which is run at a rate, paused, resumed and
-- accounted for. Its lease is the right to plan or run it.
CREATE TABLE dlq.redrives (
    id UUID PRIMARY KEY,
    kind TEXT NOT NULL DEFAULT 'retry',
    state TEXT NOT NULL DEFAULT 'planning',
    state_reason TEXT,
    filter JSONB NOT NULL,
    options JSONB NOT NULL,
    actor TEXT NOT NULL,
    reason TEXT NOT NULL,
    operation_id TEXT,
    frozen_at TIMESTAMPTZ,
    counts JSONB,
    stage INT,
    watch_until TIMESTAMPTZ,
    receipt JSONB,
    created_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    planned_at TIMESTAMPTZ,
    started_at TIMESTAMPTZ,
    finished_at TIMESTAMPTZ,
    lease_owner TEXT,
    lease_until TIMESTAMPTZ,
    lease_epoch BIGINT NOT NULL DEFAULT 0,
    lease_lost BOOLEAN NOT NULL DEFAULT false,
    CONSTRAINT chk_redrives_kind CHECK (kind IN ('retry')),
    CONSTRAINT chk_redrives_state CHECK (state IN (
        'planning', 'planned', 'running', 'paused', 'stopped', 'finished', 'cancelled', 'failed', 'expired'))
) WITH (fillfactor = 50);

CREATE INDEX idx_redrives_created_at ON dlq.redrives (created_at, id);
-- The few that may have work to do; finished ones are kept for more than a year.
CREATE INDEX idx_redrives_open ON dlq.redrives (created_at, id)
    WHERE state IN ('planning', 'planned', 'running', 'paused', 'stopped') OR (state = 'cancelled' AND receipt IS NULL);

-- One row per selected message, in the order in which they are sent. An item waits, is in flight (claim_epoch is set),
-- or has an outcome. No foreign keys: a million rows are inserted at once, and messages may be deleted.
CREATE TABLE dlq.redrive_items (
    redrive_id UUID NOT NULL,
    position INT NOT NULL,
    message_id UUID NOT NULL,
    planned_epoch BIGINT NOT NULL,
    target TEXT NOT NULL,
    key_hash BYTEA,
    stage INT,
    claim_epoch BIGINT,
    outcome TEXT,
    attempt_no INT,
    partition INT,
    "offset" BIGINT,
    reason TEXT,
    settled_at TIMESTAMPTZ,
    PRIMARY KEY (redrive_id, position),
    CONSTRAINT chk_redrive_items_outcome CHECK (outcome IN (
        'published', 'not_published', 'came_back', 'failed', 'unknown', 'skipped', 'cancelled'))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

CREATE UNIQUE INDEX uq_redrive_items_message ON dlq.redrive_items (message_id, redrive_id);
-- The items that block the rest of their key.
CREATE INDEX idx_redrive_items_blocking ON dlq.redrive_items (redrive_id, key_hash)
    WHERE key_hash IS NOT NULL AND outcome IN ('failed', 'unknown', 'skipped', 'came_back');
