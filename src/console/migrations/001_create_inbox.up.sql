CREATE SCHEMA IF NOT EXISTS console;

-- What is known of the entries of the inbox: when they were seen, and what people decided. The items themselves are
-- with their slices; an entry that nobody has decided about may have no row.
CREATE TABLE console.inbox_entries (
    id            TEXT        PRIMARY KEY CHECK (id ~ '^[a-z_]{1,20}\.[A-Za-z0-9_-]{32}$'),
    kind          TEXT        NOT NULL,
    slice         TEXT        NOT NULL,
    title         TEXT        NOT NULL CHECK (octet_length(title) <= 2000),
    place         JSONB       NOT NULL,
    -- Where the items are, by dimension, for roles that are narrowed; all NULL: only for roles that are not.
    topics        TEXT[],
    queues        TEXT[],
    destinations  TEXT[],
    workflows     TEXT[],
    link          TEXT        NOT NULL,
    item_count    BIGINT      NOT NULL,
    oldest_at     TIMESTAMPTZ,
    newest_at     TIMESTAMPTZ,
    first_seen_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    seen_at       TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    -- Since when there are no items; NULL while there are.
    gone_at       TIMESTAMPTZ,
    -- Who decided about the last of them, as far as the audit log says.
    gone_by       TEXT,
    gone_action   TEXT,
    gone_reason   TEXT,
    -- When there were items again.
    back_at       TIMESTAMPTZ,
    owner         TEXT,
    owner_name    TEXT,
    -- Hidden while there are not more items than this.
    snooze_count  BIGINT,
    snoozed_by    TEXT,
    snoozed_at    TIMESTAMPTZ,
    -- Done by hand while no items arrive, with the number of items then or the smallest one since.
    done_count    BIGINT,
    done_by       TEXT,
    done_at       TIMESTAMPTZ,
    done_reason   TEXT,
    CHECK (num_nulls(snooze_count, snoozed_by, snoozed_at) IN (0, 3)),
    CHECK (num_nulls(done_count, done_by, done_at, done_reason) IN (0, 4)),
    CHECK (snooze_count IS NULL OR done_count IS NULL),
    CHECK ((owner IS NULL) = (owner_name IS NULL))
) WITH (fillfactor = 70);
CREATE INDEX idx_inbox_entries_gone ON console.inbox_entries (gone_at) WHERE gone_at IS NOT NULL;
CREATE INDEX idx_inbox_entries_seen ON console.inbox_entries (seen_at, id);

CREATE TABLE console.inbox_notes (
    id          UUID        PRIMARY KEY DEFAULT platform.new_id(),
    entry_id    TEXT        NOT NULL REFERENCES console.inbox_entries (id) ON DELETE CASCADE,
    author      TEXT        NOT NULL,
    author_name TEXT        NOT NULL,
    text        TEXT        NOT NULL CHECK (length(text) BETWEEN 1 AND 2000),
    at          TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX idx_inbox_notes_entry ON console.inbox_notes (entry_id, at, id);

-- Saved views: pages of the console by a name.
CREATE TABLE console.views (
    id         UUID        PRIMARY KEY DEFAULT platform.new_id(),
    owner      TEXT        NOT NULL,
    owner_name TEXT        NOT NULL,
    name       TEXT        NOT NULL CHECK (length(name) BETWEEN 1 AND 100),
    -- A path of the console with its query.
    url        TEXT        NOT NULL CHECK (length(url) BETWEEN 1 AND 2000 AND url LIKE '/%' AND url NOT LIKE '//%'),
    shared     BOOLEAN     NOT NULL DEFAULT false,
    created_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (owner, name)
);
CREATE INDEX idx_views_shared ON console.views (name, id) WHERE shared;
