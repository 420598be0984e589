import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { sql, type Sql } from '../../src/platform/postgres/sql.ts';
import { startSmallHeap } from './support/small-heap.ts';

/** JSON text of numbers that are a few bytes each as they are sent, and hundreds as PostgreSQL writes them. */
const numbers = (number: string, bytes: number): string =>
  `[${Array.from({ length: Math.floor(bytes / (number.length + 1)) }, () => number).join(',')}]`;

const hostile = numbers('1e400', 65_000);
/** Short enough in the table that only its text says how large it is. */
const compact = numbers('1e400', 30_000);

const rows: Readonly<Record<string, Readonly<{ insert: Sql; path: string; list: string }>>> = {
  'dead letters with their raw bytes': {
    insert: sql`
      INSERT INTO dlq.dlq_messages
        (original_topic, error_message, status, payload, raw_value, source_topic, source_partition, source_offset)
      SELECT 'orders', 'failed', 'PENDING', ${hostile}::jsonb, convert_to(${hostile}, 'UTF8'), 'orders.dlq', 0, n
      FROM generate_series(1, 100) AS n`,
    path: '/api/v1/dlq/orders?page_size=100',
    list: 'messages',
  },
  'previews of dead letters without raw bytes': {
    insert: sql`
      INSERT INTO dlq.dlq_messages (original_topic, error_message, status, payload)
      SELECT 'orders', 'failed', 'PENDING', ${hostile}::jsonb FROM generate_series(1, 100)`,
    path: '/api/v1/dlq/messages?page_size=100&topic=orders',
    list: 'messages',
  },
  'dead letters without raw bytes': {
    insert: sql`
      INSERT INTO dlq.dlq_messages (original_topic, error_message, status, payload)
      SELECT 'orders', 'failed', 'PENDING', ${hostile}::jsonb FROM generate_series(1, 100)`,
    path: '/api/v1/dlq/orders?page_size=100',
    list: 'messages',
  },
  jobs: {
    insert: sql`
      INSERT INTO jobs.job_queue (queue, payload, result, progress)
      SELECT 'mail', json, json, json
      FROM (VALUES (${hostile}::jsonb), (${compact}::jsonb)) AS large (json), generate_series(1, 50)`,
    path: '/api/v1/jobs?page_size=100',
    list: 'jobs',
  },
  orders: {
    insert: sql`
      INSERT INTO outbox.outbox_orders (idempotency_key, destination, request_json, request_digest, response, status, next_attempt_at)
      SELECT 'key-' || n, 'nowhere', ${hostile}::jsonb, 'sha256:0', ${hostile}::jsonb, 'sent', now()
      FROM generate_series(1, 100) AS n`,
    path: '/api/v1/outbox/orders?page_size=100',
    list: 'orders',
  },
  sagas: {
    insert: sql`
      INSERT INTO saga.saga_states (workflow_name, payload, status, current_step)
      SELECT 'order', json, 'COMPLETED', 0
      FROM (VALUES (${hostile}::jsonb), (${compact}::jsonb)) AS large (json), generate_series(1, 50)`,
    path: '/api/v1/sagas?page_size=100',
    list: 'sagas',
  },
};

describe('A server with the documented heap lists a hundred rows that write out to 10 MB each', () => {
  for (const [name, { insert, path, list }] of Object.entries(rows)) {
    it(name, async (t) => {
      const { db, server, isWell, peakMb } = await startSmallHeap(t, { ROLES: 'api' });
      await db.query(insert);
      const before = peakMb();
      const answer = await server.get(path);
      t.diagnostic(`peak ${before} MB before, ${peakMb()} MB after`);
      assert.ok(answer !== null, server.log());
      assert.equal(answer.status, 200);
      const shown = (answer.body as Record<string, readonly unknown[]>)[list] ?? [];
      assert.equal(shown.length, 100);
      assert.ok(JSON.stringify(answer.body).length < 4_000_000);
      await isWell();
      assert.ok(peakMb() < 400, `${peakMb()} MB`);
    });
  }
});
