ALTER TABLE dlq.message_history DROP COLUMN original_topic;
