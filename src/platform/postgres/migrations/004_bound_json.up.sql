-- How long a JSON value is as text, which is how it leaves the database: numbers are written without exponents, so
-- that `1e308` takes 309 bytes. What is too long for any text counts as 1 GiB.
CREATE FUNCTION platform.json_bytes(p_value JSONB) RETURNS BIGINT LANGUAGE plpgsql IMMUTABLE STRICT
AS $$
BEGIN
    RETURN pg_catalog.octet_length(p_value::pg_catalog.text);
EXCEPTION WHEN program_limit_exceeded OR out_of_memory THEN
    RETURN 1073741824;
END $$;

-- For triggers: refuses a row whose JSON takes more than 16 MiB as text, too much for whoever reads it. The column's
-- name is the argument. Rows that are there already stay, and are read with care.
CREATE FUNCTION platform.refuse_large_json() RETURNS trigger LANGUAGE plpgsql
  SET search_path = pg_catalog
AS $$
DECLARE
    v_bytes BIGINT;
BEGIN
    EXECUTE format('SELECT platform.json_bytes(($1).%I)', TG_ARGV[0]) INTO v_bytes USING NEW;
    RAISE EXCEPTION '%.%.% is too large: it takes % bytes as text, at most 16777216 are accepted',
        TG_TABLE_SCHEMA, TG_TABLE_NAME, TG_ARGV[0], v_bytes
        USING ERRCODE = 'program_limit_exceeded',
              HINT = 'Numbers count as PostgreSQL writes them: 1e308 takes 309 bytes. Keep large data elsewhere and '
                     'store a reference to it.';
END $$;
