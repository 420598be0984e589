-- The history outlives its message, and says by itself which topic the message was for: so a role that is narrowed to
-- topics sees the history of deleted messages too. Of messages that were deleted before, the topic is not known.
ALTER TABLE dlq.message_history ADD COLUMN original_topic TEXT;

UPDATE dlq.message_history h SET original_topic = t.original_topic
FROM dlq.dlq_messages t WHERE t.id = h.message_id;
UPDATE dlq.message_history h SET original_topic = t.original_topic
FROM dlq.dlq_messages_archive t WHERE t.id = h.message_id AND h.original_topic IS NULL;
