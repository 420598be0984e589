DROP TABLE dlq.value_parts;
