import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Database } from '../../src/platform/postgres/database.ts';
import { sql, type Sql } from '../../src/platform/postgres/sql.ts';
import { eventually } from '../support/eventually.ts';
import { postText, startSink, startSmallHeap } from './support/small-heap.ts';

/** A megabyte of text that PostgreSQL writes out to more than fifty. */
const megabyte = `[${'1e308,'.repeat(170_000)}1]`;
/** What an earlier version has let in, or nobody has looked at. */
const stored = sql`(SELECT jsonb_agg(1e308) FROM generate_series(1, 170000))`;
/** A little larger than a value may be, and as large: 18 and 15 MB as text. */
const beyond = sql`(SELECT jsonb_agg(1e308) FROM generate_series(1, 60000))`;
const largest = sql`(SELECT jsonb_agg(1e308) FROM generate_series(1, 48000))`;

async function unbounded(db: Database, table: Sql, insert: Sql): Promise<void> {
  await db.query(sql`ALTER TABLE ${table} DISABLE TRIGGER USER`);
  await db.query(insert);
  await db.query(sql`ALTER TABLE ${table} ENABLE TRIGGER USER`);
}

describe(
  'A server with the documented heap lives through work that grows when it is read',
  { concurrency: false },
  () => {
    it('six jobs of 1 MB of 1e308 to a push queue: refused over HTTP and SQL; those that are there end with a clear error', async (t) => {
      const sink = await startSink(t);
      const { db, server, isWell, peakMb } = await startSmallHeap(t, {
        JOBS_QUEUES: JSON.stringify({ mail: { concurrency: 16, target: { type: 'http', url: sink.url } } }),
      });
      const refused = await postText(`${server.url}/api/v1/jobs`, `{"queue":"mail","payload":${megabyte}}`);
      assert.equal(refused?.status, 413);
      assert.match(refused?.body ?? '', /written_size/);
      await assert.rejects(db.query(sql`SELECT jobs.enqueue('mail', ${stored})`), /too large.*16777216/);
      await unbounded(
        db,
        sql`jobs.job_queue`,
        sql`INSERT INTO jobs.job_queue (queue, payload) SELECT 'mail', ${stored} FROM generate_series(1, 6)`,
      );
      await db.query(
        sql`INSERT INTO jobs.job_queue (queue, payload) SELECT 'mail', ${largest} FROM generate_series(1, 16)`,
      );
      await db.query(sql`SELECT jobs.enqueue('mail', '{"n": 1}')`);
      await eventually(
        async () => {
          const rows = await db.query<{ status: string; count: bigint }>(sql`
          SELECT status::text, count(*) AS count FROM jobs.job_queue GROUP BY status ORDER BY status`);
          assert.deepEqual(rows, [
            { status: 'completed', count: 17n },
            { status: 'dead_letter', count: 6n },
          ]);
        },
        { withinMs: 90_000 },
      );
      const [dead] = await db.query<{ error: string }>(sql`
      SELECT min(error_message) AS error FROM jobs.job_queue WHERE status = 'dead_letter'`);
      assert.match(dead?.error ?? '', /payload is larger than 16777216 bytes/);
      assert.equal(sink.sizes.filter((size) => size > 14_000_000).length, 16);
      await isWell();
      t.diagnostic(`peak ${peakMb()} MB`);
      assert.ok(peakMb() < 480, `${peakMb()} MB`);
    });

    it('orders of any size: they are sent a few at a time, and those beyond any size die with a clear error', async (t) => {
      const sink = await startSink(t);
      const { db, isWell, peakMb } = await startSmallHeap(t, {
        OUTBOX_DESTINATIONS: JSON.stringify({ broker: { type: 'http', url: sink.url, timeout_ms: 20_000 } }),
      });
      const request = `{"n":[${'1e308,'.repeat(60_000)}1]}`;
      const [added] = await db.query<{ outcome: string }>(sql`
        SELECT outcome FROM outbox.add_order(${request}::json, 'key-too-large', 'broker')`);
      assert.equal(added?.outcome, 'refused');
      const order = (key: string, request: Sql, count: number): Sql => sql`
      INSERT INTO outbox.outbox_orders (idempotency_key, destination, request_json, request_digest, status, next_attempt_at)
      SELECT ${key} || n, 'broker', jsonb_build_object('n', ${request}), 'sha256:0', 'queued', now()
      FROM generate_series(1, ${count}) AS n`;
      await unbounded(db, sql`outbox.outbox_orders`, order('beyond-', beyond, 3));
      await db.query(order('largest-', largest, 6));
      await eventually(
        async () => {
          const rows = await db.query<{ status: string; count: bigint }>(sql`
          SELECT status, count(*) AS count FROM outbox.outbox_orders GROUP BY status ORDER BY status`);
          assert.deepEqual(rows, [
            { status: 'dead', count: 3n },
            { status: 'sent', count: 6n },
          ]);
        },
        { withinMs: 90_000 },
      );
      await isWell();
      t.diagnostic(`peak ${peakMb()} MB`);
      assert.ok(peakMb() < 480, `${peakMb()} MB`);
    });

    it('sagas whose payloads grow when they are read', async (t) => {
      const sink = await startSink(t);
      const { db, server, isWell, peakMb } = await startSmallHeap(t, {
        SERVICES: JSON.stringify({ shop: { type: 'http', base_url: sink.url.replace(/\/$/, '') } }),
      });
      const workflow = 'name: order\nsteps:\n  - {name: one, service: shop, method: POST /one}\n';
      const registered = await server.post('/api/v1/workflows', { workflow_yaml: workflow });
      assert.equal(registered?.status, 201, JSON.stringify(registered?.body));
      const refused = await postText(
        `${server.url}/api/v1/sagas`,
        `{"workflow_name":"order","payload":{"n":${megabyte}}}`,
      );
      assert.equal(refused?.status, 413);
      await assert.rejects(
        db.query(sql`SELECT saga.start_saga('order', jsonb_build_object('n', ${stored}))`),
        /too large/,
      );
      const start = (payload: Sql, count: number): Sql => sql`
      WITH large AS MATERIALIZED (SELECT ${payload} AS n)
      SELECT count(saga.start_saga('order', jsonb_build_object('n', large.n)))
      FROM large, generate_series(1, ${count})`;
      await db.query(start(sql`(SELECT jsonb_agg(1e308) FROM generate_series(1, 1000))`, 120));
      await db.query(start(largest, 3));
      await eventually(
        async () => {
          const rows = await db.query<{ status: string; count: bigint }>(sql`
          SELECT status::text, count(*) AS count FROM saga.saga_states GROUP BY status`);
          assert.deepEqual(rows, [{ status: 'COMPLETED', count: 123n }], server.log());
        },
        { withinMs: 90_000 },
      );
      await isWell();
      t.diagnostic(`peak ${peakMb()} MB`);
      assert.ok(peakMb() < 480, `${peakMb()} MB`);
    });
  },
);
