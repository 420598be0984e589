-- Lists of edited messages. Almost empty: other messages cost it nothing.
CREATE INDEX idx_dlq_messages_edited ON dlq.dlq_messages (created_at, id) WHERE version > 0;
CREATE INDEX idx_dlq_messages_archive_edited ON dlq.dlq_messages_archive (created_at, id) WHERE version > 0;
