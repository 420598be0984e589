DROP TRIGGER trg_dlq_messages_queue_inserted ON dlq.dlq_messages;
DROP TRIGGER trg_dlq_messages_queue_changed ON dlq.dlq_messages;
DROP TRIGGER trg_dlq_messages_delete_facets ON dlq.dlq_messages;
DROP TRIGGER trg_dlq_messages_truncate_facets ON dlq.dlq_messages;
DROP TRIGGER trg_dlq_messages_archive_facets ON dlq.dlq_messages_archive;
DROP TRIGGER trg_dlq_messages_archive_delete_facets ON dlq.dlq_messages_archive;
DROP TRIGGER trg_dlq_messages_archive_truncate_facets ON dlq.dlq_messages_archive;

DROP FUNCTION dlq.index_messages(UUID[], BOOLEAN);
DROP FUNCTION dlq.queue_inserted();
DROP FUNCTION dlq.queue_changed();
DROP FUNCTION dlq.archive_facets();
DROP FUNCTION dlq.delete_facets();
DROP FUNCTION dlq.delete_archived_facets();
DROP FUNCTION dlq.truncate_facets();
DROP FUNCTION dlq.search_query(TEXT);
DROP FUNCTION dlq.search_vector(TEXT, TEXT, JSONB, BYTEA);
DROP FUNCTION dlq.searched_value(JSONB, BYTEA);
DROP FUNCTION dlq.readable_text(BYTEA);
DROP FUNCTION dlq.search_words(TEXT, BOOLEAN);

DROP INDEX dlq.idx_dlq_messages_unroutable;
DROP INDEX dlq.idx_dlq_messages_archive_unroutable;
DROP INDEX dlq.idx_dlq_messages_archive_fingerprint;
DROP INDEX dlq.idx_dlq_messages_archive_original_topic;
DROP INDEX dlq.idx_dlq_messages_archive_status;
DROP INDEX dlq.idx_dlq_messages_archive_created_at;
DROP INDEX dlq.idx_dlq_messages_archive_source_topic;
CREATE INDEX dlq_messages_archive_original_topic_idx ON dlq.dlq_messages_archive (original_topic);
CREATE INDEX dlq_messages_archive_status_idx ON dlq.dlq_messages_archive (status);
CREATE INDEX dlq_messages_archive_created_at_idx ON dlq.dlq_messages_archive (created_at);
CREATE INDEX idx_dlq_messages_archive_source_topic ON dlq.dlq_messages_archive (source_topic);

DROP TABLE dlq.index_queue;
DROP TABLE dlq.message_facets_archive;
DROP TABLE dlq.message_facets;
