DROP TABLE saga.saga_start_keys;
