-- One row per attempt, written before its call and closed in place: after a crash it is known what may have been
-- called. The status is missing exactly while the attempt is open.
ALTER TABLE saga.saga_step_logs
    ALTER COLUMN status DROP NOT NULL,
    ADD COLUMN attempt   INT     NOT NULL DEFAULT 1 CHECK (attempt >= 1),
    ADD COLUMN answer    TEXT    CHECK (answer IN ('done', 'refused', 'defect', 'unknown', 'unserved', 'not_done')),
    -- Certainly nothing of the request has left.
    ADD COLUMN is_unsent BOOLEAN NOT NULL DEFAULT false,
    -- Its service does not bear a second call after this one.
    ADD COLUMN is_last   BOOLEAN NOT NULL DEFAULT false,
    ADD COLUMN actor     TEXT,
    ADD COLUMN reason    TEXT;

UPDATE saga.saga_step_logs l SET attempt = numbered.attempt
FROM (SELECT id, row_number() OVER (PARTITION BY saga_id, step_index, action ORDER BY started_at, id) AS attempt
      FROM saga.saga_step_logs) AS numbered
WHERE l.id = numbered.id AND numbered.attempt > 1;
UPDATE saga.saga_step_logs SET completed_at = started_at WHERE completed_at IS NULL;

ALTER TABLE saga.saga_step_logs
    ALTER COLUMN attempt DROP DEFAULT,
    ADD CONSTRAINT chk_saga_step_logs_open CHECK ((status IS NULL) = (completed_at IS NULL)),
    ADD CONSTRAINT uq_saga_step_logs_attempt UNIQUE (saga_id, step_index, action, attempt);

-- The unique constraint serves what this one served.
DROP INDEX saga.idx_saga_step_logs_saga_id_step_index;
-- An attempt is closed in place, at little cost only where no index has its status; two or four different values lead
-- nobody anywhere (decision 0047).
DROP INDEX saga.idx_saga_step_logs_status;
DROP INDEX saga.idx_saga_step_logs_action;
ALTER TABLE saga.saga_step_logs SET (
    fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.1);
ALTER TABLE saga.saga_states SET (
    fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);
