-- What has ended is moved here with its log, in one transaction.
CREATE TABLE saga.saga_states_archive (LIKE saga.saga_states);
ALTER TABLE saga.saga_states_archive
    DROP COLUMN phase,
    ADD COLUMN archived_at TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    ADD PRIMARY KEY (id);
CREATE INDEX idx_saga_states_archive_created_at ON saga.saga_states_archive (created_at DESC, id);
CREATE TABLE saga.saga_step_logs_archive (LIKE saga.saga_step_logs);
ALTER TABLE saga.saga_step_logs_archive ADD PRIMARY KEY (id);
CREATE INDEX idx_saga_step_logs_archive_saga_id ON saga.saga_step_logs_archive (saga_id);

-- The log goes with its saga (ON DELETE CASCADE), so a saga is deleted only where it has been archived before.
CREATE FUNCTION saga.refuse_delete() RETURNS trigger LANGUAGE plpgsql
  SET search_path = pg_catalog
AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM saga.saga_states_archive a WHERE a.id = OLD.id) THEN
        RAISE EXCEPTION 'saga % is not archived: its history would be lost', OLD.id USING ERRCODE = 'restrict_violation';
    END IF;
    RETURN OLD;
END $$;
CREATE TRIGGER saga_states_refuse_delete BEFORE DELETE ON saga.saga_states
    FOR EACH ROW EXECUTE FUNCTION saga.refuse_delete();
