import type { Database } from '../../../src/platform/postgres/database.ts';
import { compactCounts } from '../../../src/dlq/upkeep/topic-counts.ts';
import { sql } from '../../../src/platform/postgres/sql.ts';

const step = 100_000;

/** So many rows in each of the lists of messages, jobs, orders and sagas, as months of work leave them. */
export async function storeMany(db: Database, count: number): Promise<void> {
  for (let from = 1; from <= count; from += step) {
    const to = Math.min(count, from + step - 1);
    await storeMessages(db, from, to);
    await storeJobs(db, from, to);
    await storeOrders(db, from, to);
    await storeSagas(db, from, to);
  }
  await compactCounts(db);
  await db.query(sql`VACUUM ANALYZE`);
}

async function storeMessages(db: Database, from: number, to: number): Promise<void> {
  await db.query(sql`
    INSERT INTO dlq.dlq_messages
      (original_topic, error_message, payload, status, created_at, source_topic, raw_value, consumer_group,
       fingerprint, error_class, message_key)
    SELECT 'topic-' || i % 50 || '.v1', 'TimeoutError: no answer for customer ' || i % 1000, '{"n": 1}',
           CASE WHEN i % 500 = 0 THEN 'DEAD' WHEN i % 10 < 3 THEN 'PENDING' ELSE 'RESOLVED' END,
           now() - interval '60 days' + i * interval '5 seconds', 'topic-' || i % 50 || '.dlq.v1',
           convert_to('{"n":1}', 'UTF8'), 'group-' || i % 5, 'v2:' || lpad(to_hex(i % 500), 32, '0'),
           'shop.Error' || i % 40, convert_to('key-' || i % 10007, 'UTF8')
    FROM generate_series(${from}::int, ${to}::int) AS i`);
}

async function storeJobs(db: Database, from: number, to: number): Promise<void> {
  await db.query(sql`
    INSERT INTO jobs.job_queue
      (queue, payload, status, retry_count, error_message, created_at, run_at, sort_at, started_at, completed_at,
       lease_epoch)
    SELECT 'queue-' || i % 20, '{"article": 1}', status, CASE status WHEN 'dead_letter' THEN 3 ELSE 0 END,
           CASE status WHEN 'dead_letter' THEN 'timed out after 3000 ms' END, at, at, at, at, at, 1
    FROM (SELECT i, CASE WHEN i % 500 = 0 THEN 'dead_letter' ELSE 'completed' END AS status,
                 now() - interval '60 days' + i * interval '5 seconds' AS at
          FROM generate_series(${from}::int, ${to}::int) AS i) AS made`);
}

async function storeOrders(db: Database, from: number, to: number): Promise<void> {
  await db.query(sql`
    INSERT INTO outbox.outbox_orders
      (idempotency_key, request_json, request_digest, status, retry_count, next_attempt_at, last_error, created_at,
       updated_at, destination)
    SELECT 'order-key-' || i, '{"qty": 1}', 'sha256:' || repeat('0', 64),
           CASE WHEN i % 500 = 0 THEN 'dead' ELSE 'sent' END, 0, at,
           CASE WHEN i % 500 = 0 THEN 'HTTP 400' END, at, at, 'partner-' || i % 5
    FROM (SELECT i, now() - interval '60 days' + i * interval '5 seconds' AS at
          FROM generate_series(${from}::int, ${to}::int) AS i) AS made`);
}

async function storeSagas(db: Database, from: number, to: number): Promise<void> {
  await db.query(sql`
    INSERT INTO saga.saga_states
      (workflow_name, current_step, status, payload, correlation_id, created_at, updated_at, compensation, lease_epoch)
    SELECT 'workflow-' || i % 5, 3, CASE WHEN i % 50 = 0 THEN 'FAILED' ELSE 'COMPLETED' END, '{"n": 1}',
           'order-' || i, at, at, CASE WHEN i % 50 = 0 THEN 'done' ELSE 'none' END, 1
    FROM (SELECT i, now() - interval '60 days' + i * interval '5 seconds' AS at
          FROM generate_series(${from}::int, ${to}::int) AS i) AS made`);
}
