DROP FUNCTION IF EXISTS platform.new_id();
