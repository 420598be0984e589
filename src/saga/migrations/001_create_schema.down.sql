DROP FUNCTION IF EXISTS saga.update_updated_at();
DROP SCHEMA IF EXISTS saga CASCADE;
-- pgcrypto stays: other schemas of the same database use it.
