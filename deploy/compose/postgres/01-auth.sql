-- Stands for the schema of the service that shares the database k1s0_system; Redrive never touches it.
CREATE SCHEMA auth;
