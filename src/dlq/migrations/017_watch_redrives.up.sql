-- A canary: a redrive sends a few messages first, watches whether they come back as dead letters, and then sends more.
--
-- redrives.stage is NULL without a canary. With n stages it is 1 to n, n + 1 while the rest is sent and watched, and
-- n + 2 when the last window has closed. watch_until is set while a stage is watched.
ALTER TABLE dlq.redrives
    -- The topics whose dead letters may be messages of this redrive that came back without our headers.
    ADD COLUMN watched_targets TEXT[],
    -- The last resume: what came back before it no longer counts.
    ADD COLUMN counted_from TIMESTAMPTZ,
    ADD COLUMN paused_at TIMESTAMPTZ,
    ADD COLUMN waiting_for TEXT;

CREATE INDEX idx_redrives_watched ON dlq.redrives (id)
    WHERE watched_targets IS NOT NULL AND state IN ('running', 'paused', 'stopped');

-- stage and sha256 are set with a canary only, so the indexes are empty without one. An item has the stage that sends
-- it. came_back_at is set whenever the message comes back; the outcome only until there is a receipt.
ALTER TABLE dlq.redrive_items
    ADD COLUMN fingerprint TEXT,
    ADD COLUMN sha256 BYTEA,
    ADD COLUMN came_back_at TIMESTAMPTZ;

CREATE INDEX idx_redrive_items_stage ON dlq.redrive_items (redrive_id, stage, position) WHERE stage IS NOT NULL;
CREATE INDEX idx_redrive_items_acked ON dlq.redrive_items (redrive_id, settled_at)
    WHERE stage IS NOT NULL AND outcome IN ('published', 'came_back');
CREATE INDEX idx_redrive_items_in_flight ON dlq.redrive_items (redrive_id, claim_epoch)
    WHERE stage IS NOT NULL AND outcome IS NULL AND claim_epoch IS NOT NULL;
CREATE INDEX idx_redrive_items_came_back ON dlq.redrive_items (redrive_id, came_back_at)
    WHERE came_back_at IS NOT NULL;
-- For dead letters without our headers: where the record was published, and what it was.
CREATE INDEX idx_redrive_items_place ON dlq.redrive_items (target, partition, "offset")
    WHERE stage IS NOT NULL AND "offset" IS NOT NULL;
CREATE INDEX idx_redrive_items_sha256 ON dlq.redrive_items (sha256) WHERE sha256 IS NOT NULL;
