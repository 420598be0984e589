CREATE OR REPLACE FUNCTION dlq.queue_inserted() RETURNS TRIGGER AS $$
BEGIN
    INSERT INTO dlq.index_queue (message_ids)
    SELECT array_agg(id) FROM (SELECT id, (row_number() OVER () - 1) / 100 AS part FROM new_rows) AS numbered
    GROUP BY part;
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;

CREATE OR REPLACE FUNCTION dlq.queue_changed() RETURNS TRIGGER AS $$
BEGIN
    DELETE FROM dlq.message_facets WHERE message_id = NEW.id;
    INSERT INTO dlq.index_queue (message_ids) VALUES (ARRAY[NEW.id]);
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;

DROP FUNCTION dlq.notify_indexer();
