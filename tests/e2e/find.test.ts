import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Database, Queryable } from '../../src/platform/postgres/database.ts';
import { sql, type Sql } from '../../src/platform/postgres/sql.ts';
import { eventually } from '../support/eventually.ts';
import { startGuardedSystem, type GuardedSystem } from '../support/guarded-system.ts';
import type { ApiClient } from '../support/api-client.ts';

/** One route for whatever somebody has pasted. */
type Item = Readonly<{ slice: string; kind: string; id: string; title: string; link: string; by: string }>;
type Found = Readonly<{ items: readonly Item[]; unavailable: readonly string[] }>;

const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
const traceparent = `00-${trace}-00f067aa0ba902b7-01`;

let system: GuardedSystem;
let db: Database;
let admin: ApiClient;
before(async () => {
  system = await startGuardedSystem({
    more: {
      roles: ['api', 'workers'],
      outbox: { destinations: { 'in-broker': { type: 'http', url: 'http://127.0.0.1:9/' } } },
      protect: { rules: [{ topics: ['*'], patterns: ['email'], key: false, action: 'mask' }] },
    },
  });
  db = system.system.db;
  admin = await system.as(['sys_admin']);
  await store();
});
after(() => system.drop());

let job = '';
let order = '';

async function store(): Promise<void> {
  await storeMessage('in.orders', 'C-17');
  await storeMessage('other', 'C-17');
  await storeMessage('in.orders', 'ada@example.com');
  [{ job, order } = { job: '', order: '' }] = await db.query<{ job: string; order: string }>(sql`
    SELECT (SELECT job_id::text FROM jobs.enqueue('in-mail', '{}'::jsonb, p_dedupe_key => 'C-17', p_trace => ${traceparent})) AS job,
           (SELECT id::text FROM outbox.add_order('{}'::json, 'key-of-the-order', 'in-broker', NULL, ${trace})) AS "order"`);
}

async function storeMessage(topic: string, key: string): Promise<void> {
  await db.query(sql`
    INSERT INTO dlq.dlq_messages (original_topic, error_message, source_topic, message_key, headers)
    VALUES (${topic}, 'boom', ${`${topic}.dlq`}, convert_to(${key}, 'UTF8'),
            jsonb_build_array(jsonb_build_object('key', 'traceparent', 'value', ${traceparent}::text)))`);
}

async function find(api: ApiClient, q: string): Promise<Found> {
  const { status, body, text } = await api.get<Found>(`/api/v1/find?q=${encodeURIComponent(q)}`);
  assert.equal(status, 200, text);
  return body;
}

const kindsOf = ({ items }: Found): readonly string[] =>
  items.map(({ kind, by, title }) => `${kind} ${title} by ${by}`).toSorted();

test('a key, a trace, a traceparent, an id and the beginning of an id lead to the items', async () => {
  await eventually(async () =>
    assert.deepEqual(kindsOf(await find(admin, 'C-17')), [
      'job in-mail by key',
      'message in.orders by key',
      'message other by key',
    ]),
  );
  const byTrace = [
    'job in-mail by trace',
    'message in.orders by trace',
    'message in.orders by trace',
    'message other by trace',
    'order in-broker by trace',
  ];
  assert.deepEqual(kindsOf(await find(admin, trace)), byTrace);
  assert.deepEqual(kindsOf(await find(admin, ` ${traceparent.toUpperCase()} `)), byTrace);
  assert.deepEqual(kindsOf(await find(admin, 'key-of-the-order')), ['order in-broker by key']);
  assert.deepEqual(kindsOf(await find(admin, order)), ['order in-broker by id']);
  assert.deepEqual((await find(admin, job)).items, [
    (await find(admin, job.slice(0, 13))).items.find(({ id }) => id === job),
  ]);
  assert.equal((await find(admin, job)).items[0]?.link, `/jobs/list/${job}`);
  assert.deepEqual((await find(admin, 'no such key')).items, []);
});

test('a saga and a redrive are found by their ids, and a saga by its correlation id', async () => {
  await db.query(sql`
    INSERT INTO saga.saga_states (id, workflow_name, status, correlation_id, trace)
    VALUES ('0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31', 'in-shop', 'COMPLETED', 'C-99',
            ${`00-${'a'.repeat(32)}-00f067aa0ba902b7-01`})`);
  assert.deepEqual(kindsOf(await find(admin, '0197f3c2-7a10-7c44-9d5e-2f6b1c0a8e31')), [
    'saga in-shop by id',
  ]);
  assert.deepEqual(kindsOf(await find(admin, 'C-99')), ['saga in-shop by key']);
  assert.deepEqual(kindsOf(await find(admin, 'a'.repeat(32))), ['saga in-shop by trace']);
  const planned = await admin.post<{ id: string }>('/api/v1/dlq/redrives', {
    filter: { topic: 'other' },
    reason: 'ask ada@example.com',
  });
  assert.ok(planned.status < 300, planned.text);
  assert.deepEqual(kindsOf(await find(admin, planned.body.id)), ['redrive ask [masked] by id']);
});

test('a narrowed role finds what is in its scope; who may view nothing finds nothing', async () => {
  const narrowed = await system.as(['narrow_sys_operator']);
  assert.deepEqual(kindsOf(await find(narrowed, 'C-17')), ['job in-mail by key', 'message in.orders by key']);
  assert.deepEqual((await find(await system.as(['producer']), 'C-17')).items, []);
});

test('what is covered cannot be found by its value, except by those who see payloads', async () => {
  const key = 'ada@example.com';
  await eventually(async () => assert.equal((await find(admin, key)).items.length, 1));
  assert.deepEqual((await find(await system.as(['sys_auditor']), key)).items, []);
});

test('odd texts are answered', async () => {
  for (const q of ['%', "'", '\u{1F600}', '../../x', '9'.repeat(40), 'x'.repeat(1000), '{}', '   '])
    assert.deepEqual((await find(admin, q)).items, [], q);
  for (const query of ['', '?q=', `?q=${'x'.repeat(1001)}`, '?q=a&q=b', '?q=a&x=1'])
    assert.equal((await admin.get(`/api/v1/find${query}`)).status, 400, query);
  assert.equal((await system.withToken('x').get('/api/v1/find?q=a')).status, 401);
});

test('a module that does not answer is named, and the others are searched', async () => {
  const locked = Promise.withResolvers<void>();
  const done = Promise.withResolvers<void>();
  const locking = db.transaction(async (tx) => {
    await tx.query(sql`LOCK TABLE jobs.job_queue IN ACCESS EXCLUSIVE MODE`);
    locked.resolve();
    await done.promise;
  });
  await locked.promise;
  try {
    const found = await find(admin, 'C-17');
    assert.deepEqual(found.unavailable, ['jobs']);
    assert.deepEqual(kindsOf(found), ['message in.orders by key', 'message other by key']);
  } finally {
    done.resolve();
    await locking;
  }
});

test('no search reads a whole table', async () => {
  await db.query(sql`ANALYZE`);
  const plans: string[] = [];
  const explaining: Queryable = {
    async query<Row>(statement: Sql) {
      await db.transaction(async (tx) => {
        await tx.query(sql`SET LOCAL enable_seqscan = off`);
        const plan = await tx.query<{ 'QUERY PLAN': string }>(sql`EXPLAIN ${statement}`);
        plans.push(plan.map((line) => line['QUERY PLAN']).join('\n'));
      });
      return db.query<Row>(statement);
    },
  };
  for (const finder of await findersOn(explaining))
    for (const q of [job, order, trace, 'C-17']) await finder(q);
  assert.ok(plans.length >= 12);
  const tables = 'dlq_messages|message_facets|redrives|outbox_orders|job_queue|saga_states';
  for (const plan of plans) assert.doesNotMatch(plan, new RegExp(`Seq Scan on (?:${tables})`));
  const all = plans.join('\n');
  for (const index of [
    'idx_dlq_facets_key_hash',
    'idx_dlq_facets_trace_id',
    'idx_outbox_orders_trace_id',
    'outbox_orders_idempotency_key_key',
    'idx_job_queue_trace_id',
    'idx_job_queue_dedupe',
    'idx_saga_states_correlation_id',
    'idx_saga_states_trace_id',
  ])
    assert.match(all, new RegExp(`${index}[^\\n]*\\n *Index Cond`), index);
});

async function findersOn(queries: Queryable) {
  const { createMessageFinder } = await import('../../src/dlq/browse/find-items.ts');
  const { createOrderFinder } = await import('../../src/outbox/browse/find-items.ts');
  const { createJobFinder } = await import('../../src/jobs/browse/find-items.ts');
  const { createSagaFinder } = await import('../../src/saga/browse/find-items.ts');
  const { noMasking } = await import('../support/no-masking.ts');
  const { localPrincipal } = await import('../../src/kernel/access/principal.ts');
  const request = { principal: localPrincipal, routeOptions: { config: {} } } as never;
  const payloads = { hashes: async () => null };
  const finders = [
    createMessageFinder({ db: queries, payloads, masking: noMasking('topics', 'dlq:payloads:view') }),
    createOrderFinder({ db: queries, masking: noMasking('destinations', 'outbox:payloads:view') }),
    createJobFinder({ db: queries, masking: noMasking('queues', 'jobs:payloads:view') }),
    createSagaFinder({ db: queries, masking: noMasking('workflows', 'saga:payloads:view') }),
  ];
  return finders.map((finder) => async (q: string) => finder(request, q));
}
