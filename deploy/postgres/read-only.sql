-- Reading without payloads: statuses, times, topics, counts and keys, but no message, request, answer or error text.
-- JSON and binary columns and the texts named below are left out. Run it as the owner of the schemas, again after each
-- upgrade: new columns are not covered until then.
--   psql -v role=redrive_ro -f deploy/postgres/read-only.sql k1s0_system
GRANT USAGE ON SCHEMA platform, dlq, outbox, jobs, saga, access, audit, console TO :"role";
SELECT format('REVOKE ALL ON ALL TABLES IN SCHEMA %I FROM %I', name, :'role')
FROM unnest(ARRAY['platform', 'dlq', 'outbox', 'jobs', 'saga', 'access', 'audit', 'console']) AS name \gexec
SELECT format('GRANT SELECT (%s) ON %I.%I TO %I', string_agg(quote_ident(attname), ', ' ORDER BY attnum),
              nspname, relname, :'role')
FROM pg_attribute
JOIN pg_class ON pg_class.oid = attrelid
JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE nspname IN ('platform', 'dlq', 'outbox', 'jobs', 'saga', 'access', 'audit', 'console')
  AND relkind IN ('r', 'p', 'v') AND NOT relispartition
  AND attnum > 0 AND NOT attisdropped
  AND atttypid NOT IN ('json'::regtype, 'jsonb'::regtype, 'bytea'::regtype)
  AND attname NOT IN ('error', 'error_message', 'error_stack', 'stack', 'last_error', 'detail', 'summary', 'answer',
                      'state_reason', 'last_result', 'template', 'wrapped', 'title', 'text', 'done_reason', 'gone_reason')
  -- The error with which a message came back.
  AND (relname, attname) <> ('redrive_items', 'reason')
GROUP BY nspname, relname \gexec
