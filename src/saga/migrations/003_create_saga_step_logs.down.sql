DROP TABLE IF EXISTS saga.saga_step_logs;
