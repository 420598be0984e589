-- Parts of a value that is too large for one parameter of a statement: the driver would copy all of it several times.
-- They are put here and taken away within the transaction that stores the message, so the table is always empty to
-- everybody else. It is not logged: whatever is in it when the server crashes belongs to no message.
CREATE UNLOGGED TABLE dlq.value_parts (
    id    UUID  NOT NULL,
    n     INT   NOT NULL,
    bytes BYTEA NOT NULL,
    PRIMARY KEY (id, n)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 100);
ALTER TABLE dlq.value_parts ALTER COLUMN bytes SET STORAGE EXTERNAL;
