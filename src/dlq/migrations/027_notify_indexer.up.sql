-- An indexer that waits for a notification need not ask for messages. As elsewhere, notified is only where somebody
-- waits, because PostgreSQL commits transactions that notify one after another.
CREATE FUNCTION dlq.notify_indexer() RETURNS void AS $$
BEGIN
    PERFORM pg_notify('redrive', 'dlq_index')
    WHERE EXISTS (
        SELECT FROM platform.idle_workers WHERE channel = 'dlq_index' AND idle_until > clock_timestamp());
END;
$$ LANGUAGE plpgsql;

CREATE OR REPLACE FUNCTION dlq.queue_inserted() RETURNS TRIGGER AS $$
BEGIN
    INSERT INTO dlq.index_queue (message_ids)
    SELECT array_agg(id) FROM (SELECT id, (row_number() OVER () - 1) / 100 AS part FROM new_rows) AS numbered
    GROUP BY part;
    PERFORM dlq.notify_indexer();
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;

CREATE OR REPLACE FUNCTION dlq.queue_changed() RETURNS TRIGGER AS $$
BEGIN
    DELETE FROM dlq.message_facets WHERE message_id = NEW.id;
    INSERT INTO dlq.index_queue (message_ids) VALUES (ARRAY[NEW.id]);
    PERFORM dlq.notify_indexer();
    RETURN NULL;
END;
$$ LANGUAGE plpgsql;
