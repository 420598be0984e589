-- A server that applies its migrations itself (database.migrate: true, the default). It owns what it creates, so it
-- needs nothing else; the extension pgcrypto goes to `public`. Run as the owner of the database:
--   psql -v role=redrive -f server-with-migrations.sql redrive
SELECT format('GRANT CONNECT, CREATE ON DATABASE %I TO %I', current_database(), :'role') \gexec
GRANT USAGE ON SCHEMA public TO :"role";
