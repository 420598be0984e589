import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Client } from 'pg';
import { sql } from '../../src/platform/postgres/sql.ts';
import { createTestDatabase } from '../support/database.ts';
import { runHttpFlows } from '../support/every-flow/http-flows.ts';
import { openOutsideWorld } from '../support/every-flow/outside-world.ts';
import { startOutboxSystem, type OutboxSystem } from '../support/outbox-system.ts';
import { startSagaSystem, step, type SagaSystem } from '../support/saga-system.ts';
import { startTestSystem } from '../support/start-system.ts';

/** Times and forms of values that PostgreSQL allows and JavaScript does not expect. */

test('everything works where the database writes values in other forms', async (t) => {
  const database = await createTestDatabase();
  t.after(() => database.drop());
  const client = new Client({ connectionString: database.url });
  await client.connect();
  for (const setting of [
    `DateStyle = 'German, DMY'`,
    `IntervalStyle = 'iso_8601'`,
    `extra_float_digits = -15`,
    `bytea_output = 'escape'`,
    `TimeZone = 'Asia/Kolkata'`,
  ])
    await client.query(`ALTER DATABASE ${new URL(database.url).pathname.slice(1)} SET ${setting}`);
  await client.end();
  const world = await openOutsideWorld();
  t.after(() => world.close());
  const system = await startTestSystem({ kafka: 'local', database, env: world.env });
  t.after(() => system.stop());
  assert.ok(system.broker !== null);
  await runHttpFlows({ api: system.api, broker: system.broker });
});

type Page = Readonly<{ pagination: Readonly<{ next_cursor: string | null }> }> &
  Readonly<Record<string, readonly Readonly<Record<string, unknown>>[]>>;

/** All pages of one item each; the ids in their order. */
async function walk(at: Pick<SagaSystem, 'system'>, path: string, items: string, id: string) {
  const found: unknown[] = [];
  for (let cursor = ''; ;) {
    const { status, body, text } = await at.system.api.get<Page>(`${path}?page_size=1&cursor=${cursor}`);
    assert.equal(status, 200, text);
    for (const item of body[items] ?? []) {
      assert.equal(item['created_at'], null);
      found.push(String(item[id]));
    }
    if (body.pagination.next_cursor === null) return found;
    cursor = body.pagination.next_cursor;
  }
}

describe('rows created at no finite time', () => {
  let sagas: SagaSystem;
  let orders: OutboxSystem;
  before(async () => {
    sagas = await startSagaSystem();
    orders = await startOutboxSystem();
  });
  after(async () => {
    await sagas.drop();
    await orders.drop();
  });

  test('of sagas are listed page by page, shown, and run', async () => {
    const { db } = sagas.system;
    const name = await sagas.register([step('a')], { deadline: '1h' });
    const ids = [];
    for (const created of [
      '-infinity',
      '-infinity',
      'infinity',
      '294275-12-31 23:59:59Z',
      '4000-01-01 00:00:00Z BC',
    ]) {
      const [row] = await db.query<{ saga_id: string }>(sql`
        WITH started AS (SELECT saga_id FROM saga.start_saga(${name}, '{}'))
        SELECT saga_id FROM started`);
      const id = row?.saga_id ?? '';
      await db.query(sql`UPDATE saga.saga_states SET created_at = ${created}::timestamptz WHERE id = ${id}`);
      ids.push(id);
    }
    for (const id of ids) await sagas.becomes(id, 'COMPLETED');
    await db.query(sql`
      UPDATE saga.saga_states SET created_at = '-infinity' WHERE created_at < '0001-01-01'`);
    await db.query(sql`UPDATE saga.saga_states SET deadline_at = 'infinity', updated_at = 'infinity'`);
    const listed = await walk(sagas, '/api/v1/sagas', 'sagas', 'saga_id');
    assert.deepEqual([new Set(listed), listed.length], [new Set(ids), ids.length]);
    assert.equal((await sagas.told(ids[0] ?? '')).saga.deadline_at, null);
  });

  test('of orders are listed page by page and shown', async () => {
    const { db } = orders.system;
    const ids = [await orders.order(), await orders.order(), await orders.order()];
    await orders.become(ids, 'sent');
    await db.query(sql`
      UPDATE outbox.outbox_orders
      SET created_at = '-infinity', updated_at = 'infinity', next_attempt_at = '-infinity', first_sent_at = '-infinity'`);
    await db.query(sql`UPDATE outbox.idempo_ledger SET created_at = '-infinity', updated_at = 'infinity'`);
    const listed = await walk(orders, '/api/v1/outbox/orders', 'orders', 'id');
    assert.deepEqual([new Set(listed), listed.length], [new Set(ids.map(String)), ids.length]);
    for (const id of ids) {
      const shown = await orders.system.api.get(`/api/v1/outbox/orders/${id}`);
      assert.equal(shown.status, 200, shown.text);
    }
  });

  test('of jobs are listed page by page, shown, worked on and previewed', async () => {
    const { db, api } = sagas.system;
    for (const created of ['-infinity', 'infinity', '-infinity'])
      await db.query(sql`
        INSERT INTO jobs.job_queue (queue, payload, created_at, run_at, sort_at)
        VALUES ('odd', '{}', ${created}::timestamptz, '-infinity', '-infinity')`);
    const listed = await walk(sagas, '/api/v1/jobs', 'jobs', 'job_id');
    assert.equal(listed.length, 3);
    const claimed = await api.post<{ jobs: readonly unknown[] }>('/api/v1/jobs/queues/odd/claim', {
      worker: 'w',
      limit: 10,
    });
    assert.equal(claimed.status, 200, claimed.text);
    assert.equal(claimed.body.jobs.length, 3);
    await db.query(sql`
      UPDATE jobs.job_queue
      SET status = 'dead_letter', completed_at = 'infinity', lease_owner = NULL, lease_until = NULL, error_message = 'x'`);
    const preview = await api.post<{ matched: number }>('/api/v1/jobs/requeue', {
      queue: 'odd',
      preview: true,
    });
    assert.deepEqual([preview.status, preview.body.matched], [200, 3], preview.text);
    for (const id of listed) assert.equal((await api.get(`/api/v1/jobs/${String(id)}`)).status, 200);
    assert.equal((await api.get('/metrics')).status, 200);
  });
});
