-- What filters and the full-text search of messages read: a row per message, in tables of their own, because a retry
-- writes every index of dlq_messages twice. Claims and settles do not touch them.
--
-- The indexer writes them behind ingest. Triggers queue what it has to read: every message that is inserted, by whatever
-- program, and every one whose error, key or value changes. So a message without a row is in dlq.index_queue, and the
-- oldest entry tells up to when everything is indexed. A row is archived and deleted with its message.
CREATE TABLE dlq.message_facets (
    message_id     UUID        PRIMARY KEY,
    created_at     TIMESTAMPTZ NOT NULL,
    error_class    TEXT,
    key_hash       BYTEA,
    consumer_group TEXT,
    search         TSVECTOR
) WITH (autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.02);

CREATE INDEX idx_dlq_facets_error_class ON dlq.message_facets (error_class, created_at, message_id)
    WHERE error_class IS NOT NULL;
CREATE INDEX idx_dlq_facets_key_hash ON dlq.message_facets (key_hash, created_at, message_id)
    WHERE key_hash IS NOT NULL;
CREATE INDEX idx_dlq_facets_consumer_group ON dlq.message_facets (consumer_group, created_at, message_id)
    WHERE consumer_group IS NOT NULL;
-- Every search also reads what is pending, so that is kept small.
CREATE INDEX idx_dlq_facets_search ON dlq.message_facets USING gin (search) WITH (gin_pending_list_limit = 1024);

CREATE TABLE dlq.message_facets_archive (LIKE dlq.message_facets INCLUDING ALL);

-- A hundred ids in a row: as many as PostgreSQL stores in place.
CREATE TABLE dlq.index_queue (
    id          BIGINT      GENERATED ALWAYS AS IDENTITY,
    -- Messages that were there before this migration wait behind new ones.
    is_backfill BOOLEAN     NOT NULL DEFAULT false,
    queued_at   TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    message_ids UUID[]      NOT NULL,
    PRIMARY KEY (is_backfill, queued_at, id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Lists of archived messages read them like live ones.
DROP INDEX IF EXISTS dlq.dlq_messages_archive_original_topic_idx;
DROP INDEX IF EXISTS dlq.dlq_messages_archive_status_idx;
DROP INDEX IF EXISTS dlq.dlq_messages_archive_created_at_idx;
CREATE INDEX idx_dlq_messages_archive_original_topic
    ON dlq.dlq_messages_archive (original_topic, status, created_at, id);
CREATE INDEX idx_dlq_messages_archive_status ON dlq.dlq_messages_archive (status, created_at, id);
CREATE INDEX idx_dlq_messages_archive_created_at ON dlq.dlq_messages_archive (created_at, id);
CREATE INDEX idx_dlq_messages_archive_fingerprint
    ON dlq.dlq_messages_archive (fingerprint, status, created_at, id) WHERE fingerprint IS NOT NULL;
DROP INDEX IF EXISTS dlq.idx_dlq_messages_archive_source_topic;
CREATE INDEX idx_dlq_messages_archive_source_topic
    ON dlq.dlq_messages_archive (source_topic, status, created_at, id) INCLUDE (original_topic);

-- Almost empty: other messages cost it nothing.
CREATE INDEX idx_dlq_messages_unroutable ON dlq.dlq_messages (created_at, id) WHERE unroutable;
CREATE INDEX idx_dlq_messages_archive_unroutable ON dlq.dlq_messages_archive (created_at, id) WHERE unroutable;

-- The words of a text: runs of letters and digits in lower case. Chinese, Japanese and Korean do not separate words:
-- they become pairs of neighbours, and in a stored text also the last character of each run, so that a single character
-- is found as the beginning of a pair or alone. Words are cut at 60 characters.
CREATE FUNCTION dlq.search_words(p_text TEXT, p_is_query BOOLEAN) RETURNS TEXT[]
LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
    v_cjk CONSTANT TEXT := '[\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff'
                        || '\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+';
    v_text TEXT := p_text;
    v_pairs TEXT[] := '{}';
BEGIN
    IF octet_length(v_text) > char_length(v_text) THEN
        v_text := normalize(v_text, NFKC);
        IF v_text ~ v_cjk THEN
            v_pairs := ARRAY(
                SELECT substr(run[1], i, 2)
                FROM regexp_matches(v_text, v_cjk, 'g') AS run,
                     generate_series(1, GREATEST(length(run[1]) - CASE WHEN p_is_query THEN 1 ELSE 0 END, 1)) AS i
            );
            v_text := regexp_replace(v_text, v_cjk, ' ', 'g');
        END IF;
    END IF;
    v_text := lower(v_text COLLATE pg_c_utf8);
    v_text := regexp_replace(v_text COLLATE pg_c_utf8, '[^[:alnum:]]+', ' ', 'g');
    RETURN v_pairs || ARRAY(
        SELECT left(word, 60) FROM unnest(string_to_array(v_text, ' ')) AS word WHERE word <> ''
    );
END;
$$;

-- The bytes as text, without an incomplete last character. Of what is not text, the readable ASCII.
CREATE FUNCTION dlq.readable_text(p_bytes BYTEA) RETURNS TEXT
LANGUAGE plpgsql IMMUTABLE STRICT AS $$
DECLARE
    v_length INT := octet_length(p_bytes);
BEGIN
    FOR i IN 1..LEAST(3, v_length) LOOP
        CONTINUE WHEN get_byte(p_bytes, v_length - i) BETWEEN 128 AND 191;
        IF get_byte(p_bytes, v_length - i) >= 192 THEN
            v_length := v_length - i;
        END IF;
        EXIT;
    END LOOP;
    RETURN convert_from(substring(p_bytes FROM 1 FOR v_length), 'UTF8');
EXCEPTION WHEN character_not_in_repertoire OR untranslatable_character THEN
    RETURN regexp_replace(encode(p_bytes, 'escape'), '\\[0-7]{3}', ' ', 'g');
END;
$$;

-- The first 8 kB of the value. JSON with escapes is read as PostgreSQL writes it, which resolves \u; the escapes that
-- are left are no text.
CREATE FUNCTION dlq.searched_value(p_payload JSONB, p_raw BYTEA) RETURNS TEXT
LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v_bytes BYTEA := substring(p_raw FROM 1 FOR 8192);
    v_text TEXT;
BEGIN
    IF p_payload IS NOT NULL
       AND (p_raw IS NULL OR (octet_length(p_raw) <= 65536 AND position('\x5c'::bytea IN v_bytes) > 0))
       AND platform.json_bytes(p_payload) <= 1048576
    THEN
        v_text := left(p_payload::text, 8192);
    ELSE
        v_text := dlq.readable_text(v_bytes);
    END IF;
    IF p_payload IS NOT NULL AND strpos(v_text, '\') > 0 THEN
        v_text := regexp_replace(v_text, '\\(?:u[[:xdigit:]]{4}|.)', ' ', 'g');
    END IF;
    RETURN v_text;
END;
$$;

CREATE FUNCTION dlq.search_vector(p_class TEXT, p_error TEXT, p_payload JSONB, p_raw BYTEA) RETURNS TSVECTOR
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN array_to_tsvector(dlq.search_words(
        concat_ws(' ', left(p_class, 1024), left(p_error, 8192), dlq.searched_value(p_payload, p_raw)), false));
END;
$$;

-- All words must be there. Null if the text has none.
CREATE FUNCTION dlq.search_query(p_text TEXT) RETURNS TSQUERY
LANGUAGE plpgsql IMMUTABLE STRICT AS $$
BEGIN
    RETURN (
        SELECT string_agg(
                   CASE WHEN length(word) = 1 AND octet_length(word) > 2 THEN '''' || word || ''':*'
                        ELSE '''' || word || '''' END, ' & ')
        FROM unnest(dlq.search_words(p_text, true)) AS word
    )::tsquery;
END;
$$;

CREATE FUNCTION dlq.queue_inserted() RETURNS TRIGGER AS $$
BEGIN
    INSERT INTO dlq.index_queue (message_ids)
    SELECT array_agg(id) FROM (SELECT id, (row_number() OVER () - 1) / 100 AS part FROM new_rows) AS numbered
    GROUP BY part;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;

-- Without its row the message is known to be not indexed.
CREATE FUNCTION dlq.queue_changed() RETURNS TRIGGER AS $$
BEGIN
    DELETE FROM dlq.message_facets WHERE message_id = NEW.id;
    INSERT INTO dlq.index_queue (message_ids) VALUES (ARRAY[NEW.id]);
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;

CREATE FUNCTION dlq.archive_facets() RETURNS TRIGGER AS $$
BEGIN
    WITH moved AS (
        DELETE FROM dlq.message_facets f USING new_rows n WHERE f.message_id = n.id
        RETURNING f.message_id, f.created_at, f.error_class, f.key_hash, f.consumer_group, f.search
    ), archived AS (
        INSERT INTO dlq.message_facets_archive (message_id, created_at, error_class, key_hash, consumer_group, search)
        SELECT message_id, created_at, error_class, key_hash, consumer_group, search FROM moved
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

-- Of a message that is being archived the rows are moved, before or after this.
CREATE FUNCTION dlq.delete_facets() RETURNS TRIGGER AS $$
BEGIN
    DELETE FROM dlq.message_facets f USING old_rows o
    WHERE f.message_id = o.id AND NOT EXISTS (SELECT FROM dlq.dlq_messages_archive a WHERE a.id = o.id);
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;

CREATE FUNCTION dlq.delete_archived_facets() RETURNS TRIGGER AS $$
BEGIN
    DELETE FROM dlq.message_facets_archive f USING old_rows o WHERE f.message_id = o.id;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;

CREATE FUNCTION dlq.truncate_facets() RETURNS TRIGGER AS $$
BEGIN
    IF TG_TABLE_NAME = 'dlq_messages' THEN
        TRUNCATE dlq.message_facets;
    ELSE
        TRUNCATE dlq.message_facets_archive;
    END IF;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;

CREATE TRIGGER trg_dlq_messages_queue_inserted
    AFTER INSERT ON dlq.dlq_messages
    REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION dlq.queue_inserted();
-- Does not fire for claims and settles: they set none of these.
CREATE TRIGGER trg_dlq_messages_queue_changed
    AFTER UPDATE OF created_at, error_message, error_class, consumer_group, message_key, raw_value, payload
    ON dlq.dlq_messages
    FOR EACH ROW EXECUTE FUNCTION dlq.queue_changed();
CREATE TRIGGER trg_dlq_messages_delete_facets
    AFTER DELETE ON dlq.dlq_messages
    REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION dlq.delete_facets();
CREATE TRIGGER trg_dlq_messages_truncate_facets
    AFTER TRUNCATE ON dlq.dlq_messages
    FOR EACH STATEMENT EXECUTE FUNCTION dlq.truncate_facets();
CREATE TRIGGER trg_dlq_messages_archive_facets
    AFTER INSERT ON dlq.dlq_messages_archive
    REFERENCING NEW TABLE AS new_rows
    FOR EACH STATEMENT EXECUTE FUNCTION dlq.archive_facets();
CREATE TRIGGER trg_dlq_messages_archive_delete_facets
    AFTER DELETE ON dlq.dlq_messages_archive
    REFERENCING OLD TABLE AS old_rows
    FOR EACH STATEMENT EXECUTE FUNCTION dlq.delete_archived_facets();
CREATE TRIGGER trg_dlq_messages_archive_truncate_facets
    AFTER TRUNCATE ON dlq.dlq_messages_archive
    FOR EACH STATEMENT EXECUTE FUNCTION dlq.truncate_facets();

-- Writes the rows of these messages, live or archived. With p_has_text false only their columns, for a message whose
-- text PostgreSQL refuses.
CREATE FUNCTION dlq.index_messages(p_ids UUID[], p_has_text BOOLEAN DEFAULT true) RETURNS BIGINT
LANGUAGE sql AS $$
    WITH live AS (
        INSERT INTO dlq.message_facets AS f (message_id, created_at, error_class, key_hash, consumer_group, search)
        SELECT t.id, t.created_at, left(t.error_class, 256), sha256(t.message_key), left(t.consumer_group, 255),
               CASE WHEN p_has_text
                    THEN dlq.search_vector(t.error_class, t.error_message, t.payload, t.raw_value) ELSE '' END
        FROM dlq.dlq_messages t WHERE t.id = ANY(p_ids)
        ON CONFLICT (message_id) DO UPDATE
        SET created_at = EXCLUDED.created_at, error_class = EXCLUDED.error_class, key_hash = EXCLUDED.key_hash,
            consumer_group = EXCLUDED.consumer_group, search = EXCLUDED.search
        RETURNING 1
    ), archived AS (
        INSERT INTO dlq.message_facets_archive AS f
            (message_id, created_at, error_class, key_hash, consumer_group, search)
        SELECT t.id, t.created_at, left(t.error_class, 256), sha256(t.message_key), left(t.consumer_group, 255),
               CASE WHEN p_has_text
                    THEN dlq.search_vector(t.error_class, t.error_message, t.payload, t.raw_value) ELSE '' END
        FROM dlq.dlq_messages_archive t WHERE t.id = ANY(p_ids)
        ON CONFLICT (message_id) DO UPDATE
        SET created_at = EXCLUDED.created_at, error_class = EXCLUDED.error_class, key_hash = EXCLUDED.key_hash,
            consumer_group = EXCLUDED.consumer_group, search = EXCLUDED.search
        RETURNING 1
    )
    SELECT (SELECT count(*) FROM live) + (SELECT count(*) FROM archived);
$$;

INSERT INTO dlq.index_queue (is_backfill, queued_at, message_ids)
SELECT true, LEAST(MIN(created_at), clock_timestamp()), array_agg(id)
FROM (
    SELECT id, created_at, (row_number() OVER (ORDER BY created_at, id) - 1) / 100 AS part
    FROM (
        SELECT id, created_at FROM dlq.dlq_messages
        UNION ALL
        SELECT id, created_at FROM dlq.dlq_messages_archive
    ) AS stored
) AS numbered
GROUP BY part;
