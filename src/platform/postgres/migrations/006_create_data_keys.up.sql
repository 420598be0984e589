-- Keys that encrypt stored payloads, themselves encrypted ("wrapped") by a master key that is not in the database. The
-- newest key of a slice encrypts; all of them decrypt. The lookup key, one per slice, makes the hashes by which encrypted
-- items are found.
CREATE TABLE platform.data_keys (
    id           INT         GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    slice        TEXT        NOT NULL,
    purpose      TEXT        NOT NULL CHECK (purpose IN ('payload', 'lookup')),
    -- The first day of the month; of the lookup key a constant.
    month        DATE        NOT NULL,
    -- Of several keys in a month the highest one encrypts.
    turn         INT         NOT NULL DEFAULT 0,
    -- `file:<name of the master key>:<base64>`, or what Vault's transit engine returned.
    wrapped      TEXT        NOT NULL,
    created_at   TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    rewrapped_at TIMESTAMPTZ,
    UNIQUE (slice, purpose, month, turn)
);
