-- The roles of the users who have started something that goes on without them, as in the newest token seen: a redrive
-- may go on only as long as the one who started it may still do so.
CREATE TABLE access.known_users (
    -- Issuer and subject.
    id       TEXT        PRIMARY KEY,
    type     TEXT        NOT NULL CHECK (type IN ('user', 'service')),
    name     TEXT        NOT NULL,
    roles    TEXT[]      NOT NULL,
    roles_at TIMESTAMPTZ NOT NULL
);
