CREATE SCHEMA IF NOT EXISTS access;

-- Keys for scripts and workers. The secret itself is shown once and never stored.
CREATE TABLE access.api_keys (
    id             TEXT        PRIMARY KEY CHECK (id ~ '^[a-z0-9]{8}$'),
    secret_sha256  BYTEA       NOT NULL CHECK (octet_length(secret_sha256) = 32),
    name           TEXT        NOT NULL,
    role           TEXT        NOT NULL,
    -- Patterns by dimension; NULL: as far as the role goes.
    scope          JSONB,
    -- Issuer and subject of the user who made it, and the issuer's roles of that user in the latest token seen. A key
    -- may never do more than its maker may do now.
    maker          TEXT        NOT NULL,
    maker_name     TEXT        NOT NULL,
    maker_roles    TEXT[]      NOT NULL,
    maker_roles_at TIMESTAMPTZ NOT NULL,
    created_at     TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    expires_at     TIMESTAMPTZ NOT NULL,
    -- To the minute.
    last_used_at   TIMESTAMPTZ,
    revoked_at     TIMESTAMPTZ,
    revoked_by     TEXT
);
CREATE INDEX idx_api_keys_maker ON access.api_keys (maker);
CREATE INDEX idx_api_keys_created ON access.api_keys (created_at DESC, id DESC);
