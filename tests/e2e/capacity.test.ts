import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { costs, type Cost, type SliceName } from '../../src/cli/doctor/capacity.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { eventually } from '../support/eventually.ts';
import { openOutsideWorld, type OutsideWorld } from '../support/every-flow/outside-world.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';

/** What an item leaves behind in a running system is what `doctor --plan` counts with. */
let system: TestSystem;
let world: OutsideWorld;
before(async () => {
  world = await openOutsideWorld();
  system = await startTestSystem({ kafka: 'local', env: world.env });
});
after(async () => {
  await system.drop();
  await world.close();
});

const items = 100;
const payload = { text: 'x'.repeat(400) };

type Left = Readonly<{ rows: number; bytes: number; lsn: string }>;

async function leftOf(schema: SliceName): Promise<Left> {
  const [left] = await system.db.query<Left>(sql`
    SELECT sum((xpath('/row/n/text()', query_to_xml(format('SELECT count(*) AS n FROM %s', c.oid::regclass), false, true, '')))[1]::text::int)::int AS rows,
           sum(pg_total_relation_size(c.oid))::float8 AS bytes,
           pg_current_wal_insert_lsn()::text AS lsn
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = ${schema} AND c.relkind = 'r'`);
  assert.ok(left);
  return left;
}

/** Within a factor, because pages are only filled in part, and WAL is written by everybody on the server. */
async function costsAbout(schema: SliceName, expected: Cost, work: () => Promise<unknown>): Promise<void> {
  const before = await leftOf(schema);
  await work();
  const now = await leftOf(schema);
  const rows = (now.rows - before.rows) / items;
  const bytes = (now.bytes - before.bytes) / items;
  const [wal] = await system.db.query<{ bytes: number }>(
    sql`SELECT pg_wal_lsn_diff(${now.lsn}::pg_lsn, ${before.lsn}::pg_lsn)::float8 AS bytes`,
  );
  const text = `${schema}: ${rows} rows, ${bytes} bytes, ${(wal?.bytes ?? 0) / items} bytes of WAL per item`;
  const planned = expected.bytes + JSON.stringify(payload).length;
  assert.ok(Math.abs(rows - expected.rows) <= 0.5, text);
  assert.ok(bytes < planned * 2.5 && bytes > planned / 2.5, text);
  if (process.env['TEST_PRINT_COSTS'] === '1') process.stderr.write(`${text}\n`);
}

const countOf = async (table: SliceName): Promise<number> => {
  const counts = {
    dlq: sql`SELECT count(*)::int AS n FROM dlq.dlq_messages WHERE status = 'RESOLVED'`,
    outbox: sql`SELECT count(*)::int AS n FROM outbox.outbox_orders WHERE status = 'sent'`,
    jobs: sql`SELECT count(*)::int AS n FROM jobs.job_queue WHERE status = 'completed'`,
    saga: sql`SELECT count(*)::int AS n FROM saga.saga_states WHERE status = 'COMPLETED'`,
  };
  const [row] = await system.db.query<{ n: number }>(counts[table]);
  return row?.n ?? 0;
};
const untilDone = (table: SliceName): Promise<void> =>
  eventually(async () => assert.ok((await countOf(table)) >= items), { withinMs: 60_000 });

test('a dead letter that is retried', async () => {
  const { broker } = system;
  assert.ok(broker);
  for (const topic of ['plan.v1', 'plan.v1.dlq']) await broker.createTopic(topic, 1);
  await costsAbout('dlq', costs.dlq, async () => {
    const record = {
      topic: 'plan.v1.dlq',
      key: null,
      value: Buffer.from(JSON.stringify(payload)),
      headers: [],
    };
    await broker.publish(
      Array.from({ length: items }, () => record),
      { timeoutMs: 5000 },
    );
    await eventually(async () => {
      await system.api.post('/api/v1/dlq/plan.v1/retry-all');
      assert.equal(await countOf('dlq'), items);
      assert.deepEqual(await system.db.query(sql`SELECT 1 FROM dlq.index_queue`), []);
    });
  });
});

test('an order that is sent', () =>
  costsAbout('outbox', costs.outbox, async () => {
    await system.db.query(sql`
      SELECT outbox.add_order(${JSON.stringify(payload)}::json, 'plan-order-' || n, 'broker')
      FROM generate_series(1, ${items}::int) AS n`);
    await untilDone('outbox');
  }));

test('a job that is completed', () =>
  costsAbout('jobs', costs.jobs, async () => {
    await system.db.query(sql`
      SELECT jobs.enqueue('pushed', ${JSON.stringify(payload)}::jsonb) FROM generate_series(1, ${items}::int)`);
    await untilDone('jobs');
  }));

test('a saga of two steps', async () => {
  const steps = ['reserve', 'charge'].map((name) => ({ name, service: 'shop', method: `POST /${name}` }));
  await system.api.post('/api/v1/workflows', { workflow_yaml: JSON.stringify({ name: 'plan', steps }) });
  const { saga, step } = costs;
  const expected = {
    ...saga,
    rows: saga.rows + 2 * step.rows,
    bytes: saga.bytes + 2 * step.bytes + 2 * JSON.stringify(payload).length,
  };
  await costsAbout('saga', expected, async () => {
    for (let n = 0; n < items; n += 1) {
      const { status } = await system.api.post(
        '/api/v1/sagas',
        { workflow_name: 'plan', payload },
        { 'idempotency-key': `plan-${n}` },
      );
      assert.ok(status < 300);
    }
    await untilDone('saga');
  });
});
