-- RFC 8785 canonical JSON in SQL, so that an order added by any program inside its own transaction has the digest
-- that the API would give it. It never raises for what is in the JSON, does not recurse, and takes time in
-- proportion to the text. What has no one canonical form is refused by NULL, exactly where parseExactJson
-- (src/kernel/exact-json.ts) refuses it: a key that is there twice or is __proto__, a number that changes as a
-- double, NUL or a lone surrogate in a text, more than 512 levels.
--
-- A JSON text never holds control characters but white space, so these serve as marks while it is taken apart:
-- 1 before each bracket and each key, 2 in the place of a string, 3 behind a key, 4 for \\ and 5 for \".
-- Literals with backslashes are E'' literals: the others change their meaning with standard_conforming_strings.

-- A key as a text whose order by bytes is the order of the key by UTF-16 code units. Bytes of UTF-8 have the order
-- of code points, but UTF-16 has those beyond U+FFFF (surrogate pairs, from D800) before U+E000 to U+FFFF.
CREATE FUNCTION outbox.utf16_order(key TEXT) RETURNS TEXT
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN CASE
    WHEN octet_length(key) = length(key) THEN key
    ELSE regexp_replace(
        regexp_replace(key, E'([\uE000-\uFFFF])' COLLATE "C", E'\uE001\\1', 'g'),
        E'([\U00010000-\U0010FFFF])' COLLATE "C", E'\uE000\\1', 'g')
END;

-- Whether ECMAScript writes the double that digits * 10^exponent reads as with just these digits: no shorter
-- number reads as that double, and none of the same length that does is nearer to it. For 1 to 17 digits without
-- zeros at either end, within the range of doubles.
CREATE FUNCTION outbox.is_shortest(digits TEXT, exponent INT) RETURNS BOOLEAN
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
SET extra_float_digits = 1
AS $$
DECLARE
    v_double  FLOAT8 := (digits || 'e' || exponent)::float8;
    v_integer BIGINT := digits;
    v_bits    BIGINT;
    v_exact   NUMERIC;
    v_other   BIGINT;
BEGIN
    -- PostgreSQL's own shortest form differs in one thing: it never is a number halfway between two doubles, and
    -- ECMAScript's may be. Below 2^53 such numbers have 17 digits or more, and where 17, the double itself has 16.
    IF v_double < 9007199254740992 THEN
        RETURN btrim(replace(split_part(v_double::text, 'e', 1), '.', ''), '0') = digits;
    END IF;
    v_bits := ('x' || encode(float8send(v_double), 'hex'))::bit(64)::bigint;
    v_exact := ((v_bits & 4503599627370495) + 4503599627370496) * power(2::numeric, (v_bits >> 52) - 1075);
    -- The neighbours with a digit less, then those with as many.
    FOREACH v_other IN ARRAY
        ARRAY[v_integer / 10 * 10, v_integer / 10 * 10 + 10, v_integer - 1, v_integer + 1]
    LOOP
        CONTINUE WHEN (v_other || 'e' || exponent)::numeric > 1.7976931348623157e308;
        CONTINUE WHEN (v_other || 'e' || exponent)::float8 <> v_double;
        IF v_other % 10 = 0
           OR abs((v_other || 'e' || exponent)::numeric - v_exact) < abs((digits || 'e' || exponent)::numeric - v_exact)
        THEN
            RETURN false;
        END IF;
    END LOOP;
    RETURN true;
END $$;

-- A number as ECMAScript writes it, or NULL if it would be another one. What is accepted keeps its significant
-- digits, so a double is needed only to decide; numeric, which has limits of its own, sees nothing out of range.
CREATE FUNCTION outbox.canonical_number(literal TEXT) RETURNS TEXT
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_sign     TEXT := CASE WHEN left(literal, 1) = '-' THEN '-' ELSE '' END;
    v_mantissa TEXT := split_part(lower(ltrim(literal, '-')), 'e', 1);
    v_power    TEXT := split_part(lower(literal), 'e', 2);
    v_digits   TEXT := replace(v_mantissa, '.', '');
    v_count    INT;
    -- The number is 0.digits * 10^point.
    v_point    INT := length(split_part(v_mantissa, '.', 1)) - length(v_digits);
BEGIN
    v_digits := ltrim(v_digits, '0');
    v_point := v_point + length(v_digits);
    v_digits := rtrim(v_digits, '0');
    v_count := length(v_digits);
    IF v_count = 0 THEN RETURN '0'; END IF;
    -- No text is long enough to make up for an exponent of more than nine digits.
    IF v_count > 17 OR length(ltrim(v_power, '+-0')) > 9 THEN RETURN NULL; END IF;
    IF v_power <> '' THEN v_point := v_point + v_power::int; END IF;
    IF v_point NOT BETWEEN -323 AND 309 THEN RETURN NULL; END IF;
    IF v_point IN (-323, 309)
       AND (v_digits || 'e' || v_point - v_count)::numeric NOT BETWEEN 5e-324 AND 1.7976931348623157e308
    THEN
        RETURN NULL;
    END IF;
    -- No two numbers of up to 15 digits are the same double, unless it is subnormal.
    IF (v_count > 15 OR v_point < -306) AND NOT outbox.is_shortest(v_digits, v_point - v_count) THEN
        RETURN NULL;
    END IF;
    RETURN v_sign || CASE
        WHEN v_point NOT BETWEEN -5 AND 21 THEN
            left(v_digits, 1) || CASE WHEN v_count > 1 THEN '.' ELSE '' END || substr(v_digits, 2)
            || 'e' || CASE WHEN v_point > 0 THEN '+' ELSE '' END || v_point - 1
        WHEN v_point <= 0 THEN '0.' || repeat('0', -v_point) || v_digits
        WHEN v_point < v_count THEN left(v_digits, v_point) || '.' || substr(v_digits, v_point + 1)
        ELSE rpad(v_digits, v_point, '0')
    END;
END $$;

-- The inside of a string that has escapes, with quotes and with just the escapes that it needs; NULL if it stands
-- for NUL or a lone surrogate.
CREATE FUNCTION outbox.canonical_string(inside TEXT) RETURNS TEXT
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_quoted TEXT := '"' || replace(replace(inside, E'\x05', E'\\"'), E'\x04', E'\\\\') || '"';
BEGIN
    IF NOT pg_input_is_valid(v_quoted, 'jsonb') THEN RETURN NULL; END IF;
    RETURN to_json(v_quoted::json #>> '{}');
END $$;

-- Cuts a JSON text before each bracket and each key, with every scalar in its canonical form; NULL if one has
-- none. Commas before keys and all white space are gone. The first piece is what no bracket precedes.
CREATE FUNCTION outbox.json_pieces(value JSON) RETURNS TEXT[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_structure TEXT;
    v_strings   TEXT[];
BEGIN
    -- Once escaped quotes are out of the way, every second part between quotes is the inside of a string.
    SELECT string_agg(part, E'\x02' ORDER BY n) FILTER (WHERE n % 2 = 1),
           array_agg(
               CASE
                   WHEN part ~ E'[\\\\\x04\x05]' COLLATE "C" THEN outbox.canonical_string(part)
                   ELSE '"' || part || '"'
               END ORDER BY n) FILTER (WHERE n % 2 = 0)
    INTO v_structure, v_strings
    FROM string_to_table(replace(replace(value::text, E'\\\\', E'\x04'), E'\\"', E'\x05'), '"')
         WITH ORDINALITY AS parts (part, n);
    IF array_position(v_strings, NULL) IS NOT NULL THEN RETURN NULL; END IF;

    v_structure := translate(v_structure, E' \t\n\r', '');
    -- Whatever else is a number is canonical as it stands: up to 15 digits, no exponent, no zeros at the end.
    IF v_structure ~ '[0-9][eE]|-0|[0-9.]{16}|[.]000000|[.][0-9]*0(?:[^0-9]|$)' COLLATE "C" THEN
        SELECT CASE WHEN bool_and(canonical IS NOT NULL) THEN string_agg(canonical, '' ORDER BY n) END
        INTO v_structure
        FROM (
            SELECT n,
                   CASE
                       WHEN atom[1] ~ '^[-0-9]' COLLATE "C" THEN outbox.canonical_number(atom[1])
                       ELSE atom[1]
                   END AS canonical
            FROM regexp_matches(v_structure, '-?[0-9][-+.0-9eE]*|[^-0-9]+' COLLATE "C", 'g')
                 WITH ORDINALITY AS atoms (atom, n)
        ) AS atoms;
        IF v_structure IS NULL THEN RETURN NULL; END IF;
    END IF;

    v_structure := replace(replace(v_structure, E'\x02:', E'\x01\x02\x03:'), E',\x01', E'\x01');
    v_structure := replace(replace(v_structure, '{', E'\x01{'), '}', E'\x01}');
    v_structure := replace(replace(v_structure, '[', E'\x01['), ']', E'\x01]');
    SELECT string_agg(piece || coalesce(string, ''), '' ORDER BY n)
    INTO v_structure
    FROM ROWS FROM (string_to_table(v_structure, E'\x02'), unnest(v_strings)) WITH ORDINALITY
         AS filled (piece, string, n);
    RETURN string_to_array(v_structure, E'\x01');
END $$;

-- The pieces as one text, the members of each object in canonical order, the outermost without those named (as
-- JSON strings); NULL for what json_pieces leaves to be refused: depth, and keys.
CREATE FUNCTION outbox.join_pieces(pieces TEXT[], without TEXT[]) RETURNS TEXT
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    v_pieces  TEXT[] := pieces;
    v_piece   TEXT;
    v_at      INT := 0;
    v_depth   INT := 0;
    -- By depth: where the open object or array begins, and the last member of it so far, or 0.
    v_opened  INT[];
    v_member  INT[];
    -- By member: the place of its object, of its key, and behind its value.
    v_owners  INT[] := '{}';
    v_keys    TEXT[] := '{}';
    v_starts  INT[] := '{}';
    v_stops   INT[] := '{}';
    -- By piece: which one follows it, where that is not simply the next.
    v_next    INT[] := array_fill(NULL::int, ARRAY[cardinality(pieces)]);
    v_owner   INT := 0;
    v_key     TEXT;
    v_last    INT;
    v_end     INT;
    v_joined  TEXT[] := '{}';
    v_row     RECORD;
BEGIN
    FOREACH v_piece IN ARRAY pieces LOOP
        v_at := v_at + 1;
        CONTINUE WHEN v_at = 1;
        CASE left(v_piece, 1)
        WHEN '{', '[' THEN
            v_depth := v_depth + 1;
            IF v_depth > 512 THEN RETURN NULL; END IF;
            v_opened[v_depth] := v_at;
            v_member[v_depth] := 0;
        WHEN '"' THEN
            IF v_member[v_depth] > 0 THEN v_stops[v_member[v_depth]] := v_at; END IF;
            v_keys := v_keys || split_part(v_piece, E'\x03', 1);
            v_owners := v_owners || v_opened[v_depth];
            v_starts := v_starts || v_at;
            v_member[v_depth] := cardinality(v_keys);
        ELSE
            IF v_member[v_depth] > 0 THEN v_stops[v_member[v_depth]] := v_at; END IF;
            v_depth := v_depth - 1;
        END CASE;
    END LOOP;

    FOR v_row IN
        SELECT owner, key, start, stop
        FROM unnest(v_owners, v_keys, v_starts, v_stops) AS members (owner, key, start, stop)
        ORDER BY owner, outbox.utf16_order(
            CASE WHEN strpos(key, E'\\') = 0 THEN substr(key, 2, length(key) - 2) ELSE key::json #>> '{}' END
        ) COLLATE "C"
    LOOP
        IF v_row.key = '"__proto__"' OR (v_row.owner = v_owner AND v_row.key = v_key) THEN RETURN NULL; END IF;
        IF v_row.owner <> v_owner THEN
            IF v_owner > 0 THEN v_next[v_last] := v_end; END IF;
            v_owner := v_row.owner;
            v_last := v_row.owner;
            v_end := 0;
        END IF;
        v_key := v_row.key;
        v_end := greatest(v_end, v_row.stop);
        CONTINUE WHEN v_owner = 2 AND v_key = ANY (without);
        IF v_last <> v_owner THEN v_pieces[v_row.start] := ',' || v_pieces[v_row.start]; END IF;
        v_next[v_last] := v_row.start;
        v_last := v_row.stop - 1;
    END LOOP;
    IF v_owner > 0 THEN v_next[v_last] := v_end; END IF;

    v_at := 1;
    WHILE v_at <= cardinality(pieces) LOOP
        v_joined := v_joined || v_pieces[v_at];
        v_at := coalesce(v_next[v_at], v_at + 1);
    END LOOP;
    RETURN replace(array_to_string(v_joined, ''), E'\x03', '');
END $$;

CREATE FUNCTION outbox.canonical_json(value JSON) RETURNS TEXT
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN outbox.join_pieces(outbox.json_pieces(value), '{}');

-- The digest by which a key that comes again is known to name the same order; NULL if the request is not an object
-- or has no canonical form. requestDigest (src/outbox/domain/request-digest.ts) computes the same.
CREATE FUNCTION outbox.request_digest(destination TEXT, ordering_key TEXT, request JSON) RETURNS TEXT
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE
    WHEN json_typeof(request) = 'object' THEN
        'sha256:' || encode(sha256(convert_to(
            '{"destination":' || to_json(destination)
            || ',"ordering_key":' || coalesce(to_json(ordering_key)::text, 'null')
            || ',"request":' || outbox.join_pieces(
                outbox.json_pieces(request), ARRAY['"trace_id"', '"idempotency_key"'])
            || '}', 'UTF8')), 'hex')
END;

-- Adds an order in the caller's transaction. Whatever it is given it answers, and the transaction lives: created,
-- replayed (the same order is there already), mismatch (the key belongs to another order, whose id this is),
-- refused (it can never be stored like this) or busy (another open transaction is at this key or ordering key).
CREATE FUNCTION outbox.add_order(
    request         JSON,
    idempotency_key TEXT,
    destination     TEXT,
    ordering_key    TEXT DEFAULT NULL,
    trace_id        TEXT DEFAULT NULL,
    OUT id      BIGINT,
    OUT outcome TEXT
) LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp
AS $$
DECLARE
    -- Compared by bytes, whatever collation the caller's columns have.
    v_key          TEXT COLLATE "C" := idempotency_key;
    v_destination  TEXT COLLATE "C" := destination;
    v_ordering_key TEXT COLLATE "C" := ordering_key;
    v_trace_id     TEXT COLLATE "C" := trace_id;
    v_digest       TEXT COLLATE "C";
    v_request      JSONB;
BEGIN
    outcome := 'refused';
    IF v_key IS NULL OR v_key !~ '^[!-~]{8,64}$' THEN RETURN; END IF;
    IF v_destination IS NULL OR v_destination = '' OR left(v_destination, 1) = '_' OR length(v_destination) > 100 THEN
        RETURN;
    END IF;
    IF v_ordering_key = '' OR length(v_ordering_key) > 255 THEN RETURN; END IF;
    -- A batch of orders is in memory at once.
    IF octet_length(request::text) > 1048576 THEN RETURN; END IF;
    IF length(v_trace_id) > 255 THEN RETURN; END IF;
    v_digest := outbox.request_digest(v_destination, v_ordering_key, request);
    IF v_digest IS NULL THEN RETURN; END IF;
    -- Stored is the canonical form: numeric would write 0e-16383 with all its zeros.
    v_request := outbox.canonical_json(request);
    -- The request's own, where it has one that is fit to be one.
    IF v_trace_id IS NULL AND jsonb_typeof(v_request -> 'trace_id') = 'string'
       AND length(v_request ->> 'trace_id') BETWEEN 1 AND 255 THEN
        v_trace_id := v_request ->> 'trace_id';
    END IF;
    SELECT added.id, added.outcome
    INTO add_order.id, add_order.outcome
    FROM outbox.insert_order(
        p_idempotency_key => v_key, p_destination => v_destination, p_request => v_request, p_digest => v_digest,
        p_ordering_key => v_ordering_key, p_trace_id => v_trace_id, p_traceparent => NULL,
        p_actor => session_user::text) AS added;
END $$;
