import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Sql, sql } from '../../src/platform/postgres/sql.ts';
import { assertError, type ApiClient } from '../support/api-client.ts';
import { startGuardedSystem, type GuardedSystem } from '../support/guarded-system.ts';

/** Producers see the orders that they added and the sagas that they started, and no key tells them of others. */
let guarded: GuardedSystem;
let admin: ApiClient;
before(async () => {
  const destination = {
    type: 'http',
    url: 'http://127.0.0.1:1/',
    idempotency: 'enforced',
    dedup_window: '1h',
  };
  guarded = await startGuardedSystem({
    more: {
      roles: ['api'],
      services: { stock: { type: 'http', base_url: 'http://127.0.0.1:1' } },
      outbox: { destinations: { 'in-a': destination, 'in-b': destination, 'out-a': destination } },
    },
  });
  admin = await guarded.as(['sys_admin']);
  for (const name of ['in-buy', 'out-buy']) {
    const steps = [{ name: 'one', service: 'stock', method: 'POST /reserve', compensate: 'none' }];
    const registered = await admin.post('/api/v1/workflows', {
      workflow_yaml: JSON.stringify({ name, steps }),
    });
    assert.ok(registered.status < 300, registered.text);
  }
});
after(() => guarded.drop());

async function producer(
  scopes: object = { destinations: ['in-*'], workflows: ['in-*'] },
): Promise<ApiClient> {
  const made = await admin.post<{ key: string }>('/api/v1/keys', { name: 'p', role: 'producer', scopes });
  assert.equal(made.status, 201, made.text);
  return guarded.withToken(made.body.key);
}

let used = 0;
const newKey = (): string => `own-items-${(used += 1)}`;

type Added = Readonly<{ id: number }>;
const add = (api: ApiClient, destination: string, key = newKey(), request: object = { n: 1 }) =>
  api.post<Added>(
    '/api/v1/outbox/orders',
    { destination, idempotency_key: key, request },
    { 'idempotency-key': key },
  );

type Started = Readonly<{ saga_id: string }>;
const start = (api: ApiClient, workflow: string, key = newKey(), payload: object = { n: 1 }) =>
  api.post<Started>('/api/v1/sagas', { workflow_name: workflow, payload }, { 'idempotency-key': key });

type Listed = Readonly<{
  orders?: readonly Readonly<{ id: number; created_by: string | null }>[];
  sagas?: readonly Readonly<{ saga_id: string; created_by: string | null }>[];
  pagination: Readonly<{ total_count: number }>;
}>;
type Facets = Readonly<{ total_count: number }>;

/** As the retention does it. */
const archive = (table: string, id: string): Promise<void> =>
  guarded.system.db.transaction(async (tx) => {
    const run = (text: string): Promise<unknown> => tx.query(new Sql([text], []));
    await run(`INSERT INTO ${table}_archive
      SELECT (jsonb_populate_record(NULL::${table}_archive, to_jsonb(t) || jsonb_build_object('archived_at', now()))).*
      FROM ${table} t WHERE t.id = '${id}'`);
    await run(`DELETE FROM ${table} WHERE id = '${id}'`);
  });

test('a producer sees the orders that it added, in lists, counts, ledger and one by one, and no others', async () => {
  const [one, other] = [await producer(), await producer()];
  const [keyA, keyB, foreignKey] = [newKey(), newKey(), newKey()];
  const mine = [(await add(one, 'in-a', keyA)).body.id, (await add(one, 'in-b', keyB)).body.id];
  const foreign = (await add(other, 'in-a', foreignKey)).body.id;
  const [inSql] = await guarded.system.db.query<{ id: bigint }>(
    sql`SELECT id FROM outbox.add_order('{}', 'own-items-in-sql', 'in-a')`,
  );
  for (const query of ['', '?cursor=', '?status=queued', '?created_from=2020-01-01T00:00:00Z']) {
    const { body, text } = await one.get<Listed>(`/api/v1/outbox/orders${query}`);
    assert.deepEqual(
      body.orders?.map(({ id }) => id),
      mine.toReversed(),
      text,
    );
    assert.match(body.orders?.[0]?.created_by ?? '', /^key:/);
    if (query === '') assert.equal(body.pagination.total_count, 2);
  }
  assert.equal((await one.get<Facets>('/api/v1/outbox/orders/facets')).body.total_count, 2);
  assert.equal((await one.get(`/api/v1/outbox/orders/${mine[0]}`)).status, 200);
  assert.equal((await one.get(`/api/v1/outbox/ledger/${keyA}`)).status, 200);
  for (const id of [foreign, inSql?.id])
    assertError(await one.get(`/api/v1/outbox/orders/${id}`), 404, 'SYS_OUTBOX_NOT_FOUND');
  for (const key of [foreignKey, 'own-items-in-sql'])
    assertError(await one.get(`/api/v1/outbox/ledger/${key}`), 404, 'SYS_OUTBOX_NOT_FOUND');
  for (const path of [`orders/${mine[0]}/cancel`, `orders/${foreign}/cancel`])
    assertError(await one.post(`/api/v1/outbox/${path}`, {}), 403, 'SYS_AUTH_PERMISSION_DENIED');

  await archive('outbox.outbox_orders', String(mine[0]));
  await archive('outbox.outbox_orders', String(foreign));
  assert.equal((await one.get(`/api/v1/outbox/orders/${mine[0]}`)).status, 200);
  assertError(await one.get(`/api/v1/outbox/orders/${foreign}`), 404, 'SYS_OUTBOX_NOT_FOUND');
  const all = await (await guarded.as(['sys_auditor'])).get<Listed>('/api/v1/outbox/orders?page_size=100');
  for (const id of [mine[1], Number(inSql?.id)]) assert.ok(all.body.orders?.some((order) => order.id === id));
});

test('an idempotency key of another caller is refused without its order and its answer', async () => {
  const [one, other] = [await producer(), await producer()];
  const key = newKey();
  const first = await add(one, 'in-a', key);
  for (const [destination, request] of [
    ['in-a', { n: 1 }],
    ['in-a', { n: 2 }],
    ['in-b', { n: 1 }],
  ] as const) {
    const refused = await add(other, destination, key, request);
    assertError(refused, 409, 'SYS_OUTBOX_KEY_TAKEN');
    assert.doesNotMatch(refused.text, new RegExp(`\\b${first.body.id}\\b|created_at|request_digest`));
  }
  // Those who may see the order get the answer; whoever added it also gets what a mismatch says.
  const narrow = await guarded.as(['narrow_sys_operator'], { sub: 'an-operator' });
  for (const seeing of [one, admin]) {
    const again = await add(seeing, 'in-a', key);
    assert.deepEqual([again.status, again.body.id], [200, first.body.id]);
  }
  assertError(await add(one, 'in-a', key, { n: 2 }), 422, 'SYS_OUTBOX_IDEMPOTENCY_MISMATCH');
  assertError(await add(narrow, 'in-a', key), 403);
  // Nobody is known to have added an order in SQL: a service that used the library before keeps its keys.
  await guarded.system.db.query(sql`SELECT id FROM outbox.add_order('{"n": 1}', 'own-items-moved', 'in-a')`);
  const moved = await add(one, 'in-a', 'own-items-moved');
  assert.equal(moved.status, 200, moved.text);
});

test('a corrected order cannot take the key of an order that its operator may not see', async () => {
  const key = newKey();
  const hidden = await add(admin, 'out-a', key);
  const dead = (await add(admin, 'in-a')).body.id;
  await guarded.system.db.query(sql`UPDATE outbox.outbox_orders SET status = 'dead' WHERE id = ${dead}`);
  const operator = await guarded.as(['narrow_sys_admin'], { sub: 'another' });
  const refused = await operator.post(
    `/api/v1/outbox/orders/${dead}/supersede`,
    { idempotency_key: key, request: { n: 1 } },
    { 'idempotency-key': key },
  );
  assertError(refused, 409, 'SYS_OUTBOX_KEY_TAKEN');
  assert.doesNotMatch(refused.text, new RegExp(`\\b${hidden.body.id}\\b`));
});

test('a producer sees the sagas that it started, in lists, counts, by prefix and one by one, and no others', async () => {
  const [one, other] = [await producer(), await producer()];
  const mine = [(await start(one, 'in-buy')).body.saga_id, (await start(one, 'in-buy')).body.saga_id];
  const foreign = (await start(other, 'in-buy')).body.saga_id;
  const [inSql] = await guarded.system.db.query<{ saga_id: string }>(
    sql`SELECT saga_id FROM saga.start_saga('in-buy', '{}')`,
  );
  for (const query of ['', '?cursor=', '?status=STARTED']) {
    const { body, text } = await one.get<Listed>(`/api/v1/sagas${query}`);
    assert.deepEqual(body.sagas?.map((saga) => saga.saga_id).toSorted(), mine.toSorted(), text);
    assert.match(body.sagas?.[0]?.created_by ?? '', /^key:/);
    if (query === '') assert.equal(body.pagination.total_count, 2);
  }
  assert.equal((await one.get<Facets>('/api/v1/sagas/facets')).body.total_count, 2);
  assert.equal((await one.get(`/api/v1/sagas/${mine[0]}`)).status, 200);
  const idsOf = async (prefix: string): Promise<number> =>
    (await one.get<{ ids: readonly unknown[] }>(`/api/v1/sagas/ids?prefix=${prefix}`)).body.ids.length;
  assert.equal(await idsOf(mine[0] ?? ''), 1);
  for (const id of [foreign, inSql?.saga_id ?? '']) {
    assertError(await one.get(`/api/v1/sagas/${id}`), 404, 'SYS_SAGA_NOT_FOUND');
    assert.equal(await idsOf(id), 0);
  }
  for (const id of [mine[0], foreign])
    assertError(
      await one.post(`/api/v1/sagas/${id}/cancel`, { reason: 'x' }),
      403,
      'SYS_AUTH_PERMISSION_DENIED',
    );
  assertError(await start(one, 'out-buy'), 403, 'SYS_AUTH_PERMISSION_DENIED');

  for (const id of [mine[0] ?? '', foreign]) await archive('saga.saga_states', id);
  assert.equal((await one.get(`/api/v1/sagas/${mine[0]}`)).status, 200);
  assert.equal(await idsOf(mine[0] ?? ''), 1);
  assertError(await one.get(`/api/v1/sagas/${foreign}`), 404, 'SYS_SAGA_NOT_FOUND');
  assert.equal(await idsOf(foreign), 0);
});

test('a start key of another caller is refused without the saga that it started', async () => {
  const [one, other] = [await producer(), await producer()];
  const key = newKey();
  const first = await start(one, 'in-buy', key);
  for (const payload of [{ n: 1 }, { n: 2 }]) {
    const refused = await start(other, 'in-buy', key, payload);
    assertError(refused, 409, 'SYS_SAGA_KEY_TAKEN');
    assert.ok(!refused.text.includes(first.body.saga_id));
  }
  // Also when the saga is long gone, but its key is not.
  await archive('saga.saga_states', first.body.saga_id);
  await guarded.system.db.query(sql`DELETE FROM saga.saga_states_archive WHERE id = ${first.body.saga_id}`);
  assertError(await start(other, 'in-buy', key), 409, 'SYS_SAGA_KEY_TAKEN');
  for (const seeing of [one, admin]) {
    const again = await start(seeing, 'in-buy', key);
    assert.deepEqual([again.status, again.body.saga_id], [200, first.body.saga_id]);
  }
  assertError(await start(one, 'in-buy', key, { n: 2 }), 422, 'SYS_SAGA_IDEMPOTENCY_MISMATCH');
  await guarded.system.db.query(
    sql`SELECT saga_id FROM saga.start_saga('in-buy', '{"n": 1}', p_key => 'own-items-moved')`,
  );
  assert.equal((await start(one, 'in-buy', 'own-items-moved')).status, 200);
});
