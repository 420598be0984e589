DROP TABLE outbox.destination_state;
