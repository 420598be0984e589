DROP TABLE access.api_keys;
DROP SCHEMA access;
