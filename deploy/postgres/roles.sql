-- Roles for a production where logins come and go, such as those that Vault creates. None of these roles can log in;
-- a login is a member of one of them. Run it as a role that may create roles, again whenever it changes:
--   psql -f deploy/postgres/roles.sql k1s0_system
-- Then apply the migrations with a login of redrive_migrator (see deploy/vault), and give the other two their rights:
--   psql -v role=redrive_rw -f deploy/postgres/server.sql k1s0_system
--   psql -v role=redrive_ro -f deploy/postgres/read-only.sql k1s0_system
-- as a login of redrive_migrator, too: these files must be run by the role that owns the schemas.
SELECT format('CREATE ROLE %I NOLOGIN', name)
FROM unnest(ARRAY['redrive_owner', 'redrive_migrator', 'redrive_rw', 'redrive_ro']) AS name
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) \gexec

-- Owns every schema and table, so that none belongs to a login that will be dropped.
SELECT format('GRANT CONNECT, CREATE ON DATABASE %I TO redrive_owner', current_database()) \gexec
GRANT USAGE ON SCHEMA public TO redrive_owner;

-- Applies migrations, as redrive_owner: a login of it needs `ALTER ROLE … SET role = 'redrive_owner'`.
GRANT redrive_owner TO redrive_migrator;

-- The server, and people who read.
SELECT format('GRANT CONNECT ON DATABASE %I TO redrive_migrator, redrive_rw, redrive_ro', current_database()) \gexec
