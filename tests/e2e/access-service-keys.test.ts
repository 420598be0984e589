import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ApiError, createRedriveClient } from '../../src/client-http/index.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError, type ApiClient } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { startGuardedSystem, type GuardedSystem } from '../support/guarded-system.ts';

/** Keys of services: a worker of one queue, and a producer of one queue. */
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
      outbox: { destinations: { 'in-pay': destination, 'out-pay': destination } },
    },
  });
  admin = await guarded.as(['sys_admin']);
});
after(() => guarded.drop());

type Made = Readonly<{ id: string; key: string }>;

async function makeKey(role: string, scopes: object): Promise<Made> {
  const made = await admin.post<Made>('/api/v1/keys', { name: role, role, scopes });
  assert.equal(made.status, 201, made.text);
  return made.body;
}

async function keyFor(role: string, scopes: object): Promise<ApiClient> {
  return guarded.withToken((await makeKey(role, scopes)).key);
}

type Claimed = Readonly<{ jobs: readonly Readonly<{ job_id: string; epoch: number }>[] }>;

const enqueue = (api: ApiClient, queue: string) =>
  api.post<{ job_id: string }>('/api/v1/jobs', { queue, payload: {} });

test('a key of one queue claims from it and from no other, and settles no job of another one', async () => {
  const [mine, other] = [await enqueue(admin, 'in-mail'), await enqueue(admin, 'in-mail.vip')];
  const worker = await keyFor('worker', { queues: ['in-mail'] });
  const claimed = await worker.post<Claimed>('/api/v1/jobs/queues/in-mail/claim', { worker: 'w' });
  assert.deepEqual(
    claimed.body.jobs.map(({ job_id }) => job_id),
    [mine.body.job_id],
  );
  const foreign = await admin.post<Claimed>('/api/v1/jobs/queues/in-mail.vip/claim', { worker: 'w' });
  const epoch = foreign.body.jobs[0]?.epoch;
  assertError(
    await worker.post('/api/v1/jobs/queues/in-mail.vip/claim', { worker: 'w' }),
    403,
    'SYS_AUTH_PERMISSION_DENIED',
  );
  for (const report of ['complete', 'release', 'heartbeat'])
    assertError(await worker.post(`/api/v1/jobs/${other.body.job_id}/${report}`, { epoch }), 404);
  assertError(await enqueue(worker, 'in-mail'), 403, 'SYS_AUTH_PERMISSION_DENIED');
  const done = await worker.post(`/api/v1/jobs/${mine.body.job_id}/complete`, {
    epoch: claimed.body.jobs[0]?.epoch,
  });
  assert.equal(done.status, 200, done.text);
});

test('a key of a producer adds to its queue and destination, and neither claims nor looks around', async () => {
  const producer = await keyFor('producer', { queues: ['in-*'] });
  const added = await enqueue(producer, 'in-mail');
  assert.ok(added.status < 300, added.text);
  assertError(await enqueue(producer, 'out-mail'), 403, 'SYS_AUTH_PERMISSION_DENIED');
  for (const path of ['/api/v1/jobs/queues', '/api/v1/dlq', '/metrics'])
    assertError(await producer.get(path), 403, 'SYS_AUTH_PERMISSION_DENIED');
  assertError(
    await producer.post('/api/v1/jobs/queues/in-mail/claim', { worker: 'w' }),
    403,
    'SYS_AUTH_PERMISSION_DENIED',
  );
  assertError(
    await producer.post('/api/v1/sagas', { workflow_name: 'in-a', payload: {} }),
    403,
    'SYS_AUTH_PERMISSION_DENIED',
  );
});

type Jobs = Readonly<{
  jobs: readonly Readonly<{ job_id: string; created_by: string | null }>[];
  pagination: Readonly<{ total_count: number }>;
}>;

const idsIn = ({ jobs }: Jobs): readonly string[] => jobs.map(({ job_id }) => job_id).toSorted();

test('a producer sees the jobs that it added, in lists, counts and one by one, and no others', async () => {
  const [one, other] = [
    await keyFor('producer', { queues: ['in-*'] }),
    await keyFor('producer', { queues: ['in-*'] }),
  ];
  const mine = [await enqueue(one, 'in-a'), await enqueue(one, 'in-b')].map(({ body }) => body.job_id);
  const foreign = (await enqueue(other, 'in-a')).body.job_id;
  const [inSql] = await guarded.system.db.query<{ job_id: string }>(
    sql`SELECT job_id FROM jobs.enqueue('in-a', '{}')`,
  );
  for (const query of ['', '?cursor=', '?status=pending']) {
    const { body, text } = await one.get<Jobs>(`/api/v1/jobs${query}`);
    assert.deepEqual(idsIn(body), mine.toSorted(), text);
    if (query !== '?cursor=') assert.equal(body.pagination.total_count, 2);
    assert.match(body.jobs[0]?.created_by ?? '', /^key:/);
  }
  assert.deepEqual(idsIn((await one.get<Jobs>('/api/v1/jobs?queue=in-b')).body), [mine[1]]);
  assert.equal((await one.get(`/api/v1/jobs/${mine[0]}`)).status, 200);
  for (const hidden of [foreign, inSql?.job_id ?? '']) {
    assertError(await one.get(`/api/v1/jobs/${hidden}`), 404, 'SYS_JOBS_NOT_FOUND');
    const found = await one.get<{ ids: readonly unknown[] }>(`/api/v1/jobs/ids?prefix=${hidden}`);
    assert.deepEqual(found.body.ids, []);
  }
  assertError(await one.post(`/api/v1/jobs/${mine[0]}/cancel`, {}), 403, 'SYS_AUTH_PERMISSION_DENIED');
  const outOfScope = await admin.post<{ job_id: string }>('/api/v1/jobs', { queue: 'out-a', payload: {} });
  assertError(await one.get(`/api/v1/jobs/${outOfScope.body.job_id}`), 404);
  const whole = await (await guarded.as(['sys_auditor'])).get<Jobs>('/api/v1/jobs?page_size=100');
  for (const id of [...mine, foreign, inSql?.job_id]) assert.ok(idsIn(whole.body).includes(id ?? ''));
});

test('a dedupe key of another caller is refused to a producer without the job that has it', async () => {
  const [one, other] = [
    await keyFor('producer', { queues: ['in-*'] }),
    await keyFor('producer', { queues: ['in-*'] }),
  ];
  const asked = { queue: 'in-a', payload: {}, dedupe_key: 'nightly' };
  const first = await one.post<{ job_id: string }>('/api/v1/jobs', asked);
  const refused = await other.post('/api/v1/jobs', asked);
  assertError(refused, 409, 'SYS_JOBS_DEDUPE_KEY_TAKEN');
  assert.ok(!refused.text.includes(first.body.job_id));
  for (const seen of [one, admin]) {
    const again = await seen.post<{ job_id: string; duplicate: boolean }>('/api/v1/jobs', asked);
    assert.deepEqual([again.body.job_id, again.body.duplicate], [first.body.job_id, true]);
  }
});

test('a worker sees the jobs that it holds, until it settles them', async () => {
  const [one, other] = [
    await keyFor('worker', { queues: ['in-held'] }),
    await keyFor('worker', { queues: ['in-held'] }),
  ];
  await enqueue(admin, 'in-held');
  await enqueue(admin, 'in-held');
  // Both workers have the same name, as replicas with a fixed one would.
  const claim = async (worker: ApiClient) => {
    const { body } = await worker.post<Claimed>('/api/v1/jobs/queues/in-held/claim', { worker: 'w' });
    return body.jobs[0] ?? { job_id: '', epoch: 0 };
  };
  const [mine, foreign] = [await claim(one), await claim(other)];
  assert.deepEqual(idsIn((await one.get<Jobs>('/api/v1/jobs')).body), [mine.job_id]);
  assert.equal((await one.get(`/api/v1/jobs/${mine.job_id}`)).status, 200);
  assertError(await one.get(`/api/v1/jobs/${foreign.job_id}`), 404, 'SYS_JOBS_NOT_FOUND');
  await one.post(`/api/v1/jobs/${mine.job_id}/complete`, { epoch: mine.epoch });
  assertError(await one.get(`/api/v1/jobs/${mine.job_id}`), 404, 'SYS_JOBS_NOT_FOUND');
  assert.equal((await one.get<Jobs>('/api/v1/jobs')).body.pagination.total_count, 0);
});

test('a key that is revoked while it holds a job settles it no more, and the job is done by another', async () => {
  const made = await makeKey('worker', { queues: ['in-revoked'] });
  const worker = guarded.withToken(made.key);
  await enqueue(admin, 'in-revoked');
  const claim = (api: ApiClient) =>
    api.post<Claimed>('/api/v1/jobs/queues/in-revoked/claim', { worker: 'w' });
  const [held] = (await claim(worker)).body.jobs;
  assert.equal((await admin.delete(`/api/v1/keys/${made.id}`)).status, 200);
  for (const report of ['heartbeat', 'complete', 'fail', 'release'])
    assertError(
      await worker.post(`/api/v1/jobs/${held?.job_id}/${report}`, { epoch: held?.epoch }),
      401,
      'SYS_AUTH_TOKEN_INVALID',
    );
  assertError(await claim(worker), 401, 'SYS_AUTH_TOKEN_INVALID');
  await guarded.system.db.query(sql`
    UPDATE jobs.job_queue SET lease_until = now() - interval '1 minute' WHERE job_id = ${held?.job_id}`);
  const other = await keyFor('worker', { queues: ['in-revoked'] });
  const again = await eventually(async () => {
    const [job] = (await claim(other)).body.jobs;
    return job ?? assert.fail('it is not released yet');
  });
  assert.equal(again.job_id, held?.job_id);
  const done = await other.post(`/api/v1/jobs/${again.job_id}/complete`, { epoch: again.epoch });
  assert.equal(done.status, 200, done.text);
});

test('a key that expires while it claims is refused from then on', async () => {
  const made = await makeKey('worker', { queues: ['in-expired'] });
  const worker = guarded.withToken(made.key);
  assert.equal((await worker.post('/api/v1/jobs/queues/in-expired/claim', { worker: 'w' })).status, 200);
  await guarded.system.db.query(sql`UPDATE access.api_keys SET expires_at = now() WHERE id = ${made.id}`);
  const refused = await eventually(async () => {
    const answer = await worker.post('/api/v1/jobs/queues/in-expired/claim', { worker: 'w' });
    assert.equal(answer.status, 401);
    return answer;
  });
  assertError(refused, 401, 'SYS_AUTH_TOKEN_EXPIRED');
});

test('a key of a producer adds orders and starts sagas of its names, and no others', async () => {
  for (const name of ['in-buy', 'out-buy']) {
    const steps = [{ name: 'one', service: 'stock', method: 'POST /reserve', compensate: 'none' }];
    const registered = await admin.post('/api/v1/workflows', {
      workflow_yaml: JSON.stringify({ name, steps }),
    });
    assert.ok(registered.status < 300, registered.text);
  }
  const made = await makeKey('producer', { destinations: ['in-*'], workflows: ['in-*'], queues: ['in-*'] });
  // The client library over HTTP.
  const client = createRedriveClient({
    url: guarded.system.url,
    headers: { authorization: `Bearer ${made.key}` },
  });
  const order = (destination: string, key: string) =>
    client.addOrder({ destination, idempotency_key: key, request: { n: 1 } }, { idempotencyKey: key });
  const added = await order('in-pay', 'service-keys-1');
  assert.equal(typeof added.id, 'number');
  const denied = (error: unknown): boolean =>
    error instanceof ApiError && error.status === 403 && error.code === 'SYS_AUTH_PERMISSION_DENIED';
  await assert.rejects(order('out-pay', 'service-keys-2'), denied);
  const saga = await client.startSaga({ workflow_name: 'in-buy', payload: {} });
  assert.equal(typeof saga.saga_id, 'string');
  await assert.rejects(client.startSaga({ workflow_name: 'out-buy', payload: {} }), denied);
  const job = await client.enqueueJob({ queue: 'in-mail', payload: {} });
  assert.equal(typeof job.job_id, 'string');
  await assert.rejects(client.enqueueJob({ queue: 'out-mail', payload: {} }), denied);
  // A job that is pushed by the server is settled by nobody else.
  await assert.rejects(client.claimJobs({ queue: 'in-mail', worker: 'w' }), denied);
});

test('a wrong key is refused at every door of services', async () => {
  const wrong = guarded.withToken(`rdk_aaaaaaaa_${'a'.repeat(43)}`);
  const body = { queue: 'in-mail', payload: {} };
  for (const answer of [
    await wrong.post('/api/v1/jobs', body),
    await wrong.post('/api/v1/jobs/queues/in-mail/claim', { worker: 'w' }),
    await wrong.post(
      '/api/v1/outbox/orders',
      { destination: 'in-pay', idempotency_key: 'k-000001', request: {} },
      { 'idempotency-key': 'k-000001' },
    ),
    await wrong.post('/api/v1/sagas', { workflow_name: 'in-buy', payload: {} }),
  ])
    assertError(answer, 401, 'SYS_AUTH_TOKEN_INVALID');
});
