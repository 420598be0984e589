import assert from 'node:assert/strict';
import { after, afterEach, before, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError, type Answer } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import {
  commandRedrive,
  endedRedrive,
  planRedrive,
  showRedrive,
  type NewRedrive,
} from '../support/redrives.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import { storeRecords } from '../support/stored-message.ts';

/** A redrive is changed while it waits or runs. */

const topic = 'orders.v1';
const root = '/api/v1/dlq/redrives';

let system: TestSystem;
before(async () => {
  system = await startTestSystem({ kafka: 'local' });
  await system.broker?.createTopic(topic, 1);
});
after(() => system.drop());
afterEach(() =>
  system.db.query(sql`TRUNCATE dlq.dlq_messages, dlq.message_history, dlq.redrives, dlq.redrive_items`),
);

const plan = async (redrive: NewRedrive): Promise<string> => {
  await storeRecords(
    system.db,
    topic,
    Array.from({ length: 300 }, (_, i) => ({ key: `k${i}`, value: `${i}` })),
  );
  return (await planRedrive(system.api, redrive)).id;
};

const etagOf = async (id: string): Promise<string> =>
  (await system.api.get(`${root}/${id}`)).headers.get('etag') ?? assert.fail('no etag');

const patch = async (id: string, body: object, etag?: string): Promise<Answer> =>
  system.api.raw({
    method: 'PATCH',
    path: `${root}/${id}`,
    headers: {
      'content-type': 'application/json',
      'x-actor': 'alice',
      ...(etag === undefined ? {} : { 'if-match': etag }),
    },
    body: JSON.stringify(body),
  });

for (const kind of ['retry', 'dead'] as const)
  test(`a ${kind} that runs at 1 per second finishes soon after its limit is removed, and slows down again`, async () => {
    const id = await plan({ kind, rate_per_second: 100_000 });
    const slow = await patch(id, { rate_per_second: 1 }, await etagOf(id));
    assert.equal(slow.status, 200, slow.text);
    await commandRedrive(system.api, id, 'start');
    await eventually(async () =>
      assert.ok(((await showRedrive(system.api, id)).counts['waiting'] ?? 0) < 300),
    );
    assert.ok(((await showRedrive(system.api, id)).counts['waiting'] ?? 0) > 290);
    const fast = await patch(
      id,
      { rate_per_second: null, reason: 'the consumer keeps up' },
      await etagOf(id),
    );
    assert.equal(fast.status, 200, fast.text);
    const { state_reason } = fast.body as Readonly<{ state_reason: string }>;
    assert.equal(state_reason, 'change by alice: the consumer keeps up');
    assert.equal(fast.headers.get('etag'), await etagOf(id));
    await endedRedrive(system.api, id);
  });

test('a change needs the entity tag of what was read', async () => {
  const id = await plan({ rate_per_second: 1 });
  assertError(await patch(id, { rate_per_second: 5 }), 428, 'SYS_DLQ_PRECONDITION_REQUIRED');
  const etag = await etagOf(id);
  assert.equal((await patch(id, { rate_per_second: 5 }, etag)).status, 200);
  assertError(await patch(id, { rate_per_second: 6 }, etag), 412, 'SYS_DLQ_PRECONDITION_FAILED');
  const planned = await etagOf(id);
  await commandRedrive(system.api, id, 'start');
  // A command is a change too.
  assertError(await patch(id, { rate_per_second: 6 }, planned), 412);
  const { body } = await system.api.get<{ options: { rate_per_second: number } }>(`${root}/${id}`);
  assert.equal(body.options.rate_per_second, 5);
});

test('a canary can be changed only before the start, and by its rules', async () => {
  const id = await plan({ rate_per_second: 1 });
  assertError(await patch(id, { canary: { stages: [5, 1] } }, await etagOf(id)), 400);
  const changed = await patch(id, { canary: { stages: [2, 4] } }, await etagOf(id));
  const { options } = changed.body as Readonly<{ options: { canary: { stages: number[] } } }>;
  assert.deepEqual(options.canary.stages, [2, 4]);
  await commandRedrive(system.api, id, 'start');
  const late = assertError(await patch(id, { canary: null }, await etagOf(id)), 409, 'SYS_DLQ_CONFLICT');
  assert.match(late.message, /only before the start/);
});

test('wrong changes are refused', async () => {
  const id = await plan({ kind: 'dead' });
  const etag = await etagOf(id);
  assertError(await patch(id, { canary: { stages: [1] } }, etag), 409);
  for (const body of [{}, { rate_per_second: 0 }, { rate_per_second: '5' }, { order: 'none' }])
    assertError(await patch(id, body, etag), 400);
  assertError(await patch('00000000-0000-4000-8000-000000000000', { rate_per_second: 1 }, etag), 404);
  await commandRedrive(system.api, id, 'cancel');
  await endedRedrive(system.api, id, 'cancelled');
  const over = assertError(await patch(id, { rate_per_second: 1 }, await etagOf(id)), 409);
  assert.match(over.message, /redrive is cancelled/);
});
