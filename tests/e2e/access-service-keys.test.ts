import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { assertError, type ApiClient } from '../support/api-client.ts';
import { startGuardedSystem, type GuardedSystem } from '../support/guarded-system.ts';

/** Keys of services: a worker of one queue, and a producer of one queue. */
let guarded: GuardedSystem;
let admin: ApiClient;
before(async () => {
  guarded = await startGuardedSystem({ more: { roles: ['api'] } });
  admin = await guarded.as(['sys_admin']);
});
after(() => guarded.drop());

async function keyFor(role: string, scopes: object): Promise<ApiClient> {
  const made = await admin.post<{ key: string }>('/api/v1/keys', { name: role, role, scopes });
  assert.equal(made.status, 201, made.text);
  return guarded.withToken(made.body.key);
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
  for (const path of ['/api/v1/jobs', `/api/v1/jobs/${added.body.job_id}`, '/api/v1/jobs/queues', '/metrics'])
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
