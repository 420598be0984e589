-- The trace that a message belongs to, from its traceparent header. It is written behind ingest with the other facets, so
-- neither ingest nor retries pay for it. Messages that were indexed before have none until they are indexed again; of
-- encrypted ones the headers cannot be read.
ALTER TABLE dlq.message_facets ADD COLUMN trace_id TEXT;
ALTER TABLE dlq.message_facets_archive ADD COLUMN trace_id TEXT;
CREATE INDEX idx_dlq_facets_trace_id ON dlq.message_facets (trace_id, created_at, message_id)
    WHERE trace_id IS NOT NULL;
CREATE INDEX idx_dlq_facets_archive_trace_id ON dlq.message_facets_archive (trace_id, created_at, message_id)
    WHERE trace_id IS NOT NULL;

-- The first traceparent of the stored headers; NULL if there is none, or if it is malformed.
CREATE FUNCTION dlq.trace_id_of(p_headers JSONB) RETURNS TEXT
LANGUAGE sql IMMUTABLE SET search_path = pg_catalog, pg_temp
RETURN (
    SELECT (regexp_match(
        lower(jsonb_path_query_first(p_headers, 'lax $[*] ? (@.key == "traceparent").value') #>> '{}'),
        '^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}'))[1]
);

CREATE OR REPLACE FUNCTION dlq.index_messages(p_ids UUID[], p_has_text BOOLEAN DEFAULT true) RETURNS BIGINT
LANGUAGE sql AS $$
    WITH live AS (
        INSERT INTO dlq.message_facets AS f (message_id, created_at, error_class, key_hash, consumer_group, trace_id, search)
        SELECT t.id, t.created_at, left(t.error_class, 256), COALESCE(t.key_hmac, sha256(t.message_key)), left(t.consumer_group, 255),
               CASE WHEN t.data_key IS NULL THEN dlq.trace_id_of(t.headers) END,
               CASE WHEN p_has_text
                    THEN dlq.search_vector(t.error_class, t.error_message, t.payload,
                                            CASE WHEN t.data_key IS NULL THEN t.raw_value END) ELSE '' END
        FROM dlq.dlq_messages t WHERE t.id = ANY(p_ids)
        ON CONFLICT (message_id) DO UPDATE
        SET created_at = EXCLUDED.created_at, error_class = EXCLUDED.error_class, key_hash = EXCLUDED.key_hash,
            consumer_group = EXCLUDED.consumer_group, trace_id = EXCLUDED.trace_id, search = EXCLUDED.search
        RETURNING 1
    ), archived AS (
        INSERT INTO dlq.message_facets_archive AS f
            (message_id, created_at, error_class, key_hash, consumer_group, trace_id, search)
        SELECT t.id, t.created_at, left(t.error_class, 256), COALESCE(t.key_hmac, sha256(t.message_key)), left(t.consumer_group, 255),
               CASE WHEN t.data_key IS NULL THEN dlq.trace_id_of(t.headers) END,
               CASE WHEN p_has_text
                    THEN dlq.search_vector(t.error_class, t.error_message, t.payload,
                                            CASE WHEN t.data_key IS NULL THEN t.raw_value END) ELSE '' END
        FROM dlq.dlq_messages_archive t WHERE t.id = ANY(p_ids)
        ON CONFLICT (message_id) DO UPDATE
        SET created_at = EXCLUDED.created_at, error_class = EXCLUDED.error_class, key_hash = EXCLUDED.key_hash,
            consumer_group = EXCLUDED.consumer_group, trace_id = EXCLUDED.trace_id, search = EXCLUDED.search
        RETURNING 1
    )
    SELECT (SELECT count(*) FROM live) + (SELECT count(*) FROM archived);
$$;

CREATE OR REPLACE FUNCTION dlq.archive_facets() RETURNS TRIGGER AS $$
BEGIN
    WITH moved AS (
        DELETE FROM dlq.message_facets f USING new_rows n WHERE f.message_id = n.id
        RETURNING f.message_id, f.created_at, f.error_class, f.key_hash, f.consumer_group, f.trace_id, f.search
    ), archived AS (
        INSERT INTO dlq.message_facets_archive (message_id, created_at, error_class, key_hash, consumer_group, trace_id, search)
        SELECT message_id, created_at, error_class, key_hash, consumer_group, trace_id, search FROM moved
        ON CONFLICT (message_id) DO NOTHING
    )
    INSERT INTO dlq.index_queue (message_ids)
    SELECT array_agg(id) FROM (
        SELECT n.id, (row_number() OVER () - 1) / 100 AS part FROM new_rows n
        WHERE NOT EXISTS (SELECT FROM moved WHERE moved.message_id = n.id)
    ) AS numbered
    GROUP BY part;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;
