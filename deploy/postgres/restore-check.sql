-- Checks a restored database before anything is started on it. Prints one row per check; every row must say `ok`.
--   psql -X -f deploy/postgres/restore-check.sql k1s0_system
SELECT name, CASE WHEN problems = 0 THEN 'ok' ELSE 'FAILED' END AS result, problems
FROM (
    SELECT 'server has left recovery' AS name, pg_is_in_recovery()::int::bigint AS problems
    UNION ALL
    SELECT 'all schemas are there', 5 - count(*)
    FROM pg_namespace WHERE nspname IN ('platform', 'dlq', 'outbox', 'jobs', 'saga')
    UNION ALL
    SELECT 'migrations are recorded', (count(*) = 0)::int FROM platform.migrations
    UNION ALL
    SELECT 'indexes are valid', count(*)
    FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname IN ('platform', 'dlq', 'outbox', 'jobs', 'saga') AND NOT (indisvalid AND indisready)
    UNION ALL
    SELECT 'constraints are valid', count(*)
    FROM pg_constraint JOIN pg_namespace ON pg_namespace.oid = connamespace
    WHERE nspname IN ('platform', 'dlq', 'outbox', 'jobs', 'saga') AND NOT convalidated AND contype = 'f'
    UNION ALL
    SELECT 'lease epochs are below their sequence', count(*)
    FROM (SELECT max(lease_epoch) AS epoch FROM dlq.dlq_messages
          UNION ALL SELECT max(lease_epoch) FROM outbox.outbox_orders
          UNION ALL SELECT max(lease_epoch) FROM jobs.job_queue
          UNION ALL SELECT max(lease_epoch) FROM saga.saga_states) AS used
    WHERE epoch > (SELECT last_value FROM platform.lease_epochs)
) AS checks
ORDER BY name;
