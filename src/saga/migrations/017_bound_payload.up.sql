-- At most 16 MiB as text. A value of up to 1000 bytes takes 11 MB at most, so only longer ones are measured, and those
-- that are compressed (copied from another row), whose length says nothing.
CREATE TRIGGER saga_states_bound_payload BEFORE INSERT OR UPDATE OF payload ON saga.saga_states
    FOR EACH ROW WHEN ((pg_column_size(NEW.payload) > 1000 OR pg_column_compression(NEW.payload) IS NOT NULL)
                       AND platform.json_bytes(NEW.payload) > 16777216)
    EXECUTE FUNCTION platform.refuse_large_json('payload');
