DROP INDEX dlq.idx_dlq_messages_archive_edited;
DROP INDEX dlq.idx_dlq_messages_edited;
