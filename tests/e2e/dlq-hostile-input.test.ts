import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import { assertError, type RawRequest } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { hostileBodies, hostileSegments } from '../support/hostile-input.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import { storeMessage } from '../support/stored-message.ts';
import { tableHashes } from '../support/table-hashes.ts';

/** Whatever is sent, the answer is a documented one in the one form of errors, and nothing has changed. */

const root = '/api/v1/dlq';
const topic = 'orders.dlq.v1';
const json = { 'content-type': 'application/json' };

let system: TestSystem;
let id: string;
before(async () => {
  system = await startTestSystem({ kafka: 'local' });
  await system.broker?.createTopic(topic, 1);
  const record = { topic, key: null, value: Buffer.from('{}'), headers: [] };
  await system.broker?.publish([record, record], { timeoutMs: 5000 });
  await eventually(async () => {
    const { body } = await system.api.get<{ partitions: { stored: number }[] }>(`${root}/accounting`);
    assert.equal(body.partitions[0]?.stored, 2);
  });
  id = await storeMessage(system.db);
});
after(() => system.drop());

async function refused(request: RawRequest, status: number, code?: string): Promise<void> {
  const before = await tableHashes(system.db);
  assertError(await system.api.raw(request), status, code);
  assert.deepEqual(await tableHashes(system.db), before);
}

const idRoutes: readonly Readonly<{ method: string; suffix: string; body?: string }>[] = [
  { method: 'GET', suffix: '' },
  { method: 'DELETE', suffix: '' },
  { method: 'GET', suffix: '/raw' },
  { method: 'GET', suffix: '/history' },
  { method: 'POST', suffix: '/retry' },
  { method: 'POST', suffix: '/dead' },
  { method: 'POST', suffix: '/reopen', body: '{"reason":"x"}' },
];

describe('an id that is none', () => {
  for (const { method, suffix, body } of idRoutes)
    test(`${method} /messages/…${suffix} refuses it`, async () => {
      for (const segment of hostileSegments) {
        const path = `${root}/messages/${segment}${suffix}`;
        await refused({ method, path, headers: json, ...(body === undefined ? {} : { body }) }, 400);
      }
    });

  for (const { method, suffix, body } of idRoutes)
    test(`${method} /messages/…${suffix} does not find an unknown one`, async () => {
      const path = `${root}/messages/${randomUUID()}${suffix}`;
      const request = { method, path, headers: json, ...(body === undefined ? {} : { body }) };
      await refused(request, 404, 'SYS_DLQ_NOT_FOUND');
    });
});

describe('a body that is none', () => {
  for (const suffix of ['/retry', '/dead', '/reopen'])
    for (const { name, body } of hostileBodies)
      test(`${suffix} refuses ${name}`, () =>
        refused(
          { method: 'POST', path: `${root}/messages/${id}${suffix}`, headers: json, body },
          400,
          'SYS_DLQ_VALIDATION_ERROR',
        ));

  for (const { name, body } of hostileBodies)
    test(`retry-all refuses ${name}`, () =>
      refused({ method: 'POST', path: `${root}/orders.events.v1/retry-all`, headers: json, body }, 400));

  test('a body over the limit is 413', () =>
    refused(
      {
        method: 'POST',
        path: `${root}/messages/${id}/reopen`,
        headers: json,
        body: JSON.stringify({ reason: 'x'.repeat(1_100_000) }),
      },
      413,
    ));

  test('a body that does not say that it is JSON is 415', async () => {
    for (const type of ['text/plain', 'multipart/form-data', 'application/x-www-form-urlencoded', 'x', '/'])
      await refused(
        {
          method: 'POST',
          path: `${root}/messages/${id}/dead`,
          headers: { 'content-type': type },
          body: '{"reason":"x"}',
        },
        415,
      );
  });

  test('a deletion with a body is refused', () =>
    refused({ method: 'DELETE', path: `${root}/messages/${id}`, headers: json, body: '{"a":1}' }, 400));
});

describe('a topic that is none', () => {
  const isImpossible = (one: string): boolean => /%(00|zz|$|C0|ED|FF)/.test(one) || one.length > 249;
  for (const { method, suffix } of [
    { method: 'GET', suffix: '' },
    { method: 'POST', suffix: '/retry-all' },
  ])
    test(`${method} /…${suffix} refuses what cannot be a name, and finds nothing under any other`, async () => {
      const before = await tableHashes(system.db);
      for (const segment of hostileSegments) {
        const answer = await system.api.raw({ method, path: `${root}/${segment}${suffix}` });
        if (isImpossible(segment)) assertError(answer, 400);
        else assert.ok([200, 400, 404, 405].includes(answer.status), `${segment}: ${answer.text}`);
      }
      assert.deepEqual(await tableHashes(system.db), before);
    });

  test('an unknown method is 405 and says which are known', async () => {
    const answer = await system.api.raw({ method: 'PUT', path: `${root}/messages/${id}` });
    assertError(answer, 405);
    assert.match(answer.headers.get('allow') ?? '', /GET.*DELETE|DELETE.*GET/);
  });

  test('an unknown path is 404', () => refused({ method: 'GET', path: `${root}/messages/${id}/nope` }, 404));
});

describe('a seek that is none', () => {
  const path = `${root}/sources/${topic}/0/seek`;
  for (const body of [
    '{}',
    '{"reason":"x"}',
    '{"earliest":true}',
    '{"earliest":false,"reason":"x"}',
    '{"earliest":"true","reason":"x"}',
    '{"earliest":true,"offset":0,"reason":"x"}',
    '{"offset":-1,"reason":"x"}',
    '{"offset":1.5,"reason":"x"}',
    '{"offset":"1","reason":"x"}',
    '{"offset":null,"reason":"x"}',
    '{"offset":9007199254740993,"reason":"x"}',
    '{"offset":1e300,"reason":"x"}',
    '{"timestamp":"","reason":"x"}',
    '{"timestamp":"yesterday","reason":"x"}',
    '{"timestamp":"hello 7","reason":"x"}',
    '{"timestamp":"1","reason":"x"}',
    '{"timestamp":"2026-13-45T00:00:00Z","reason":"x"}',
    '{"timestamp":"1969-12-31T23:59:59Z","reason":"x"}',
    '{"timestamp":1767225600000,"reason":"x"}',
    '{"offset":0,"reason":" "}',
    '{"offset":0,"reason":"x","force":true}',
  ])
    test(`${body} is refused`, () =>
      refused({ method: 'POST', path, headers: json, body }, 400, 'SYS_DLQ_VALIDATION_ERROR'));

  test('an offset that has not been read is 422', () =>
    refused(
      { method: 'POST', path, headers: json, body: '{"offset":3,"reason":"x"}' },
      422,
      'SYS_DLQ_SEEK_BEYOND_POSITION',
    ));

  test('a partition that is no number is 400, an unknown one 404', async () => {
    const body = '{"earliest":true,"reason":"x"}';
    for (const partition of ['-1', '1.5', 'x', '0x0', '00', '2147483648', '%00'])
      await refused(
        { method: 'POST', path: `${root}/sources/${topic}/${partition}/seek`, headers: json, body },
        400,
      );
    for (const unknown of [`${topic}/1`, `${topic}/2147483647`, 'nowhere/0'])
      await refused(
        { method: 'POST', path: `${root}/sources/${unknown}/seek`, headers: json, body },
        404,
        'SYS_DLQ_NOT_FOUND',
      );
  });
});
