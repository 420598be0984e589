-- An event is removed when it is told or held, so that it is never overlooked: numbers of an identity column become
-- visible out of order, and a mark "all up to here" would pass over those that commit late.
ALTER TABLE platform.notify_events SET (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);

-- What a notifier has told not long ago, and what has come of the same since. A row lives as long as a cool-down.
CREATE TABLE platform.notify_groups (
    notifier      TEXT        NOT NULL,
    slice         TEXT        NOT NULL,
    kind          TEXT        NOT NULL,
    subject       TEXT        NOT NULL,
    told_at       TIMESTAMPTZ NOT NULL,
    held_count    BIGINT      NOT NULL DEFAULT 0 CHECK (held_count >= 0),
    held_first_at TIMESTAMPTZ,
    held_last_at  TIMESTAMPTZ,
    held_samples  JSONB       NOT NULL DEFAULT '[]',
    PRIMARY KEY (notifier, slice, kind, subject),
    CHECK ((held_count = 0) = (held_first_at IS NULL) AND (held_count = 0) = (held_last_at IS NULL))
);
CREATE INDEX idx_notify_groups_told_at ON platform.notify_groups (notifier, told_at);
