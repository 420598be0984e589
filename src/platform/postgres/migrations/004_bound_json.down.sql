DROP FUNCTION platform.refuse_large_json();
DROP FUNCTION platform.json_bytes(JSONB);
