-- Logins of people in the console. The reference in the cookie is never stored, only its hash. A row that has ended is
-- deleted.
CREATE TABLE access.sessions (
    id_sha256    BYTEA       PRIMARY KEY CHECK (octet_length(id_sha256) = 32),
    -- Issuer and subject, and what the ID token said at the login.
    subject      TEXT        NOT NULL,
    name         TEXT        NOT NULL,
    roles        TEXT[]      NOT NULL,
    created_at   TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    -- To the minute.
    last_seen_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    expires_at   TIMESTAMPTZ NOT NULL,
    address      TEXT,
    agent        TEXT
);
CREATE INDEX idx_sessions_subject ON access.sessions (subject);
CREATE INDEX idx_sessions_expires ON access.sessions (expires_at);
