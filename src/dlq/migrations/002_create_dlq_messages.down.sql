DROP TRIGGER IF EXISTS trg_dlq_messages_updated_at ON dlq.dlq_messages;
DROP TABLE IF EXISTS dlq.dlq_messages;
