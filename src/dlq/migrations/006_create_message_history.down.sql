DROP PROCEDURE IF EXISTS dlq.purge_archived_dlq_messages(INT, INT);
DROP TABLE IF EXISTS dlq.message_history;
