DROP FUNCTION IF EXISTS dlq.update_updated_at();
DROP SCHEMA IF EXISTS dlq CASCADE;
-- pgcrypto stays: other schemas of the same database use it.
