-- The original design writes a log row without the columns that later versions added. The attempt is the next one of
-- its step and action. Whether a failed call had its effect anyway is not said, so the step is in doubt and is not
-- called again by itself; rows from before version 008 were read in the same way.
CREATE FUNCTION saga.complete_log_row() RETURNS trigger LANGUAGE plpgsql
  SET search_path = pg_catalog
AS $$
BEGIN
    SELECT COALESCE(max(l.attempt), 0) + 1 INTO NEW.attempt
    FROM saga.saga_step_logs l
    WHERE l.saga_id = NEW.saga_id AND l.step_index = NEW.step_index AND l.action = NEW.action;
    IF NEW.answer IS NULL AND NEW.status IS NOT NULL THEN
        NEW.answer := CASE NEW.status WHEN 'SUCCESS' THEN 'done' WHEN 'SKIPPED' THEN NULL ELSE 'unknown' END;
        NEW.is_unsent := NEW.status = 'SKIPPED';
        NEW.is_last := NEW.status IN ('FAILED', 'TIMEOUT');
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER saga_step_logs_complete_row BEFORE INSERT ON saga.saga_step_logs
    FOR EACH ROW WHEN (NEW.attempt IS NULL)
    EXECUTE FUNCTION saga.complete_log_row();

-- A TRUNCATE fires no trigger for DELETE, and would lose the history of every saga at once.
CREATE FUNCTION saga.refuse_truncate() RETURNS trigger LANGUAGE plpgsql
  SET search_path = pg_catalog
AS $$
BEGIN
    RAISE EXCEPTION 'saga.% must not be truncated: the history of its sagas would be lost', TG_TABLE_NAME
        USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER saga_states_refuse_truncate BEFORE TRUNCATE ON saga.saga_states
    FOR EACH STATEMENT EXECUTE FUNCTION saga.refuse_truncate();
CREATE TRIGGER saga_step_logs_refuse_truncate BEFORE TRUNCATE ON saga.saga_step_logs
    FOR EACH STATEMENT EXECUTE FUNCTION saga.refuse_truncate();

-- For the recovery query of the original design (decision 0065).
CREATE INDEX idx_saga_states_unfinished ON saga.saga_states (created_at)
    WHERE status IN ('STARTED', 'RUNNING', 'COMPENSATING');
