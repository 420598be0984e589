-- UUID version 7 with its time to the microsecond: ids grow with time, so new rows share the pages of their indexes, a
-- list by id is a list by age, and what is added one after the other keeps its order. Every name is written with its
-- schema, in place of a search_path of its own: so it becomes a part of the statement that calls it, which makes it
-- several times cheaper. The time is taken once: 12 digits of milliseconds, then 3 of what is beyond.
CREATE FUNCTION platform.new_id() RETURNS UUID LANGUAGE sql VOLATILE PARALLEL SAFE
AS $$
    SELECT (overlay(
        pg_catalog.lpad(pg_catalog.to_hex((
            pg_catalog.date_part('epoch', pg_catalog.clock_timestamp())
            OPERATOR(pg_catalog.*) 4096000)::pg_catalog.int8), 15, '0')
            PLACING '7' FROM 13 FOR 0)
        OPERATOR(pg_catalog.||) pg_catalog.substr(pg_catalog.gen_random_uuid()::pg_catalog.text, 20)
        )::pg_catalog.uuid
$$;
