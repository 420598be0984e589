-- Whether a number is what a double is: whether ECMAScript writes the double that it reads as with just its digits.
-- The engine reads a payload as doubles, so any other number would reach the participants as another one.
CREATE FUNCTION saga.is_exact_number(p_number NUMERIC) RETURNS BOOLEAN
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
SET extra_float_digits = 1
AS $$
DECLARE
    v_number NUMERIC := trim_scale(abs(p_number));
    v_double FLOAT8;
    v_bits   BIGINT;
    v_exact  NUMERIC;
    v_unit   NUMERIC;
    v_other  NUMERIC;
BEGIN
    IF v_number = 0 THEN RETURN true; END IF;
    IF v_number NOT BETWEEN 5e-324 AND 1.7976931348623157e308 THEN RETURN false; END IF;
    v_double := v_number;
    -- PostgreSQL's own shortest form differs in one thing: it never is a number halfway between two doubles, and
    -- ECMAScript's may be. Below 2^53 such numbers have 17 digits or more, and where 17, the double itself has 16.
    IF v_double < 9007199254740992 THEN
        RETURN v_double::text::numeric = v_number;
    END IF;
    -- Beyond that there are only integers.
    IF scale(v_number) > 0 THEN RETURN false; END IF;
    v_bits := ('x' || encode(float8send(v_double), 'hex'))::bit(64)::bigint;
    v_exact := ((v_bits & 4503599627370495) + 4503599627370496) * power(2::numeric, (v_bits >> 52) - 1075);
    v_unit := ('1e' || length(v_number::text) - length(rtrim(v_number::text, '0')))::numeric;
    IF v_number / v_unit >= 1e17 THEN RETURN false; END IF;
    -- The neighbours with a digit less, then those with as many: no shorter one may read as the same double, and none
    -- of the same length that does may be nearer to it.
    FOREACH v_other IN ARRAY ARRAY[
        v_number - mod(v_number, v_unit * 10), v_number - mod(v_number, v_unit * 10) + v_unit * 10,
        v_number - v_unit, v_number + v_unit]
    LOOP
        CONTINUE WHEN v_other > 1.7976931348623157e308 OR v_other::float8 <> v_double;
        IF mod(v_other, v_unit * 10) = 0 OR abs(v_other - v_exact) < abs(v_number - v_exact) THEN
            RETURN false;
        END IF;
    END LOOP;
    RETURN true;
END $$;

-- What the API would refuse about a payload, or NULL. The text tells most of them apart from those that need a closer
-- look: 15 digits are always exact, and what is nested deeply is long.
CREATE FUNCTION saga.flaw_of_payload(p_payload JSONB) RETURNS TEXT
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_text TEXT COLLATE "C" := p_payload::text;
BEGIN
    IF jsonb_typeof(p_payload) <> 'object' THEN
        RETURN 'must be an object';
    END IF;
    -- A request of the API may have 512 levels, of which the first is the request itself.
    IF length(v_text) > 1000 AND jsonb_path_exists(
        p_payload, 'strict $.**{511} ? (@.type() == "object" || @.type() == "array")')
    THEN
        RETURN 'must not be nested deeper than 511 levels';
    END IF;
    IF strpos(v_text, '"__proto__"') > 0 AND jsonb_path_exists(p_payload, 'lax $.**."__proto__"') THEN
        RETURN 'must not have __proto__ as a name';
    END IF;
    IF v_text ~ '[0-9.]{16}' AND EXISTS (
        -- As one array: jsonb_path_query moves all that is left with each row that it gives.
        SELECT 1 FROM jsonb_array_elements_text(
            jsonb_path_query_array(p_payload, 'strict $.** ? (@.type() == "number")')) AS found (number)
        WHERE length(found.number) > 15 AND NOT saga.is_exact_number(found.number::numeric))
    THEN
        RETURN 'must only have numbers that a double holds exactly: write others as texts';
    END IF;
    RETURN NULL;
END $$;

-- One spelling for each number, as the API stores them: 1.0 is 1. In a JSON text every second part between quotes is
-- the inside of a string, once escaped quotes are out of the way; control characters never stand in one.
CREATE FUNCTION saga.with_plain_numbers(p_payload JSONB) RETURNS JSONB
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_text TEXT COLLATE "C" := p_payload::text;
BEGIN
    IF v_text !~ '[.][0-9]*0([^0-9]|$)' THEN
        RETURN p_payload;
    END IF;
    SELECT string_agg(
        CASE
            WHEN n % 2 = 0 THEN part
            ELSE regexp_replace(
                regexp_replace(part, '([.][0-9]*[1-9])0+(?![0-9])', '\1', 'g'), '[.]0+(?![0-9])', '', 'g')
        END, '"' ORDER BY n)
    INTO v_text
    FROM string_to_table(replace(replace(v_text, E'\\\\', E'\x04'), E'\\"', E'\x05'), '"')
         WITH ORDINALITY AS parts (part, n);
    RETURN replace(replace(v_text, E'\x05', E'\\"'), E'\x04', E'\\\\');
END $$;

-- Begins a saga in the caller's transaction, with the current definition of its workflow. With a key that was used
-- before, that saga is the answer, or a mismatch where something else was asked for then. What the API refuses is
-- refused here with invalid_parameter_value; a trace that is none is left out, as there.
CREATE FUNCTION saga.start_saga(
    p_workflow_name  TEXT,
    p_payload        JSONB DEFAULT NULL,
    p_correlation_id TEXT  DEFAULT NULL,
    p_initiated_by   TEXT  DEFAULT NULL,
    p_key            TEXT  DEFAULT NULL,
    p_trace          TEXT  DEFAULT NULL,
    OUT saga_id UUID,
    OUT outcome TEXT
) LANGUAGE plpgsql
  SET search_path = pg_catalog
AS $$
#variable_conflict use_column
DECLARE
    v_hash    TEXT;
    v_limit   BIGINT;
    v_digest  TEXT;
    v_payload JSONB;
    v_flaw    TEXT := CASE
        WHEN p_workflow_name IS NULL OR length(p_workflow_name) NOT BETWEEN 1 AND 255
            THEN 'workflow_name must be a text of 1 to 255 characters'
        WHEN length(p_correlation_id) NOT BETWEEN 1 AND 255
            THEN 'correlation_id must be a text of 1 to 255 characters'
        WHEN length(p_initiated_by) NOT BETWEEN 1 AND 255
            THEN 'initiated_by must be a text of 1 to 255 characters'
        WHEN p_key COLLATE "C" !~ '^[!-~]{1,255}$' THEN 'key must be 1 to 255 visible ASCII characters'
        ELSE 'payload ' || saga.flaw_of_payload(p_payload)
    END;
BEGIN
    IF v_flaw IS NOT NULL THEN
        RAISE EXCEPTION 'saga.start_saga: %', v_flaw USING ERRCODE = 'invalid_parameter_value';
    END IF;
    SELECT w.current_hash, (d.definition ->> 'deadline_ms')::bigint INTO v_hash, v_limit
    FROM saga.workflows w JOIN saga.workflow_definitions d ON d.hash = w.current_hash
    WHERE w.name = p_workflow_name;
    IF NOT FOUND THEN
        outcome := 'unknown_workflow';
        RETURN;
    END IF;
    v_payload := saga.with_plain_numbers(p_payload);
    saga_id := platform.new_id();
    IF p_key IS NOT NULL THEN
        v_digest := encode(sha256(convert_to(
            jsonb_build_array(p_workflow_name, v_payload, p_correlation_id, p_initiated_by)::text, 'UTF8')), 'hex');
        LOOP
            INSERT INTO saga.saga_start_keys (workflow_name, key, digest, saga_id, expires_at)
            VALUES (p_workflow_name, p_key, v_digest, saga_id, clock_timestamp() + interval '30 days')
            ON CONFLICT (workflow_name, key) DO NOTHING;
            EXIT WHEN FOUND;
            SELECT k.saga_id, CASE WHEN k.digest = v_digest THEN 'replayed' ELSE 'mismatch' END INTO saga_id, outcome
            FROM saga.saga_start_keys k WHERE k.workflow_name = p_workflow_name AND k.key = p_key;
            IF FOUND THEN
                RETURN;
            END IF;
            -- Its time was over this moment: the key is free.
            saga_id := platform.new_id();
        END LOOP;
    END IF;
    INSERT INTO saga.saga_states
        (id, workflow_name, payload, correlation_id, initiated_by, definition_hash, wake_at, deadline_at, trace)
    VALUES (saga_id, p_workflow_name, v_payload, p_correlation_id, p_initiated_by, v_hash, clock_timestamp(),
            clock_timestamp() + v_limit * interval '1 millisecond',
            -- A trace is never worth the saga itself. It is kept in the version that everybody reads.
            CASE
                WHEN p_trace COLLATE "C" ~ '^[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-[^\n]*)?$'
                     AND p_trace NOT LIKE 'ff-%' AND (length(p_trace) = 55 OR p_trace NOT LIKE '00-%')
                THEN '00-' || substr(p_trace, 4, 50)
                     || CASE WHEN strpos('13579bdf', substr(p_trace, 55, 1)) > 0 THEN '01' ELSE '00' END
            END);
    outcome := 'started';
    PERFORM pg_notify('redrive', 'saga')
    WHERE EXISTS (SELECT 1 FROM platform.idle_workers WHERE channel = 'saga' AND idle_until > clock_timestamp());
END $$;
