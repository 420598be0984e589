-- A start with a key that was used before is that saga again. A key is kept for 30 days at least, and beyond the end
-- of its saga.
CREATE TABLE saga.saga_start_keys (
    workflow_name VARCHAR(255) NOT NULL,
    key           TEXT         NOT NULL CHECK (length(key) BETWEEN 1 AND 255),
    digest        TEXT         NOT NULL,
    saga_id       UUID         NOT NULL,
    expires_at    TIMESTAMPTZ  NOT NULL,
    PRIMARY KEY (workflow_name, key)
);
CREATE INDEX idx_saga_start_keys_expires_at ON saga.saga_start_keys (expires_at);
