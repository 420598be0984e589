import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import * as fc from 'fast-check';
import { assertError, type Answer, type RawRequest } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { hostileBodies, hostileSegments } from '../support/hostile-input.ts';
import { startTestSystem, type TestSystem } from '../support/start-system.ts';
import { storeMessage } from '../support/stored-message.ts';
import { tableHashes } from '../support/table-hashes.ts';

/** Requests made of pieces of real ones and of rubbish: no 500, and no refusal that changes anything. */

const root = '/api/v1/dlq';
const topic = 'orders.dlq.v1';
const documented = new Set([200, 400, 404, 405, 409, 413, 415, 422, 431]);

let system: TestSystem;
before(async () => {
  system = await startTestSystem({ kafka: 'local' });
  await system.broker?.createTopic(topic, 1);
  await system.broker?.createTopic('orders.v1', 1);
  const record = { topic, key: null, value: Buffer.from('{}'), headers: [] };
  await system.broker?.publish([record, record], { timeoutMs: 5000 });
  await eventually(async () => {
    const { body } = await system.api.get<{ partitions: { stored: number }[] }>(`${root}/accounting`);
    assert.equal(body.partitions[0]?.stored, 2);
  });
});
after(() => system.drop());

test('any request is answered with a documented status, and a refusal changes nothing', async () => {
  const ids: string[] = [];
  for (let i = 0; i < 30; i += 1)
    for (const status of ['PENDING', 'DEAD', 'RESOLVED'] as const)
      ids.push(await storeMessage(system.db, { topic: 'orders.v1', status }));
  const seen = new Map<number, number>();
  let last = await tableHashes(system.db);
  await fc.assert(
    fc.asyncProperty(requests(ids), async (request) => {
      const answer = await send(request);
      assert.ok(documented.has(answer.status), `${answer.status} ${answer.text}`);
      seen.set(answer.status, (seen.get(answer.status) ?? 0) + 1);
      if (answer.status !== 200) assertError(answer, answer.status);
      const now = answer.status === 200 ? await settledHashes() : await tableHashes(system.db);
      if (answer.status !== 200) assert.deepEqual(now, last);
      last = now;
    }),
    { numRuns: 800, interruptAfterTimeLimit: 20_000 },
  );
  for (const status of [200, 400, 404, 405, 409])
    assert.ok((seen.get(status) ?? 0) > 0, `no request was answered with ${status}`);
});

/** After a seek the reader goes on by itself; then the tables rest again. */
async function settledHashes(): Promise<Readonly<Record<string, string>>> {
  return eventually(async () => {
    const { body } = await system.api.get<{ sources: { position: number; high_offset: number }[] }>(
      `${root}/sources`,
    );
    for (const source of body.sources) assert.equal(source.position, source.high_offset);
    return tableHashes(system.db);
  });
}

/** Node itself refuses to send some header values and paths; that is no answer of ours. */
async function send(request: RawRequest): Promise<Answer> {
  try {
    return await system.api.raw(request);
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code !== 'ERR_INVALID_CHAR' && code !== 'ERR_UNESCAPED_CHARACTERS') throw error;
    return system.api.raw({ method: 'GET', path: '/nothing' });
  }
}

function requests(ids: readonly string[]): fc.Arbitrary<RawRequest> {
  const text = fc
    .string({ unit: 'binary', maxLength: 20 })
    .map((any) => encodeURIComponent(any.toWellFormed()));
  const hostile = fc.oneof(fc.constantFrom(...hostileSegments), text);
  const mostly = (real: fc.Arbitrary<string>): fc.Arbitrary<string> =>
    fc.oneof({ weight: 3, arbitrary: real }, { weight: 1, arbitrary: hostile });
  const id = mostly(fc.constantFrom(...ids));
  const action = mostly(fc.constantFrom('retry', 'dead', 'reopen', 'raw', 'history'));
  const path = fc.oneof(
    fc.tuple(id, action).map((parts) => `messages/${parts.join('/')}`),
    id.map((one) => `messages/${one}`),
    mostly(fc.constantFrom('messages', 'sources', 'accounting', topic)),
    mostly(fc.constantFrom(topic, 'orders.v1')).map((one) => `${one}/retry-all`),
    fc
      .tuple(mostly(fc.constant(topic)), mostly(fc.constant('0')))
      .map((parts) => `sources/${parts.join('/')}/seek`),
    fc.array(hostile, { maxLength: 5 }).map((parts) => parts.join('/')),
  );
  const parameter = fc
    .tuple(
      fc.constantFrom('page', 'page_size', 'cursor', 'topic', 'status', 'q', '__proto__'),
      fc.oneof(
        text,
        fc.constantFrom('', '1', '0', '-1', 'PENDING', topic, '%00', '%', '%ED%A0%80', '9'.repeat(20)),
      ),
    )
    .map((pair) => pair.join('='));
  const json = { 'content-type': 'application/json' };
  const polite = fc
    .tuple(fc.constantFrom(...ids), fc.constantFrom('retry', 'dead', 'reopen'))
    .map(([one, verb]) => ({
      method: 'POST',
      path: `${root}/messages/${one}/${verb}`,
      headers: json,
      body: verb === 'retry' ? '' : '{"reason":"x"}',
    }));
  const rubbish = fc.record(
    {
      method: fc.constantFrom('GET', 'GET', 'POST', 'POST', 'DELETE', 'PUT', 'PATCH'),
      path: fc
        .tuple(path, fc.array(parameter, { maxLength: 2 }))
        .map(([rest, query]) => `${root}/${rest}${query.length === 0 ? '' : `?${query.join('&')}`}`),
      headers: fc.constantFrom(
        json,
        json,
        {},
        { 'content-type': 'text/plain' },
        { ...json, 'x-actor': 'ü\x7f' },
      ),
      body: fc.oneof(
        fc.constantFrom(
          '',
          '{}',
          '{"reason":"x"}',
          '{"offset":0,"reason":"x"}',
          '{"earliest":true,"reason":"x"}',
        ),
        fc.constantFrom(...hostileBodies.map((one) => one.body)),
        fc.json({ maxDepth: 4 }),
        fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
      ),
    },
    { requiredKeys: ['method', 'path'] },
  );
  return fc.oneof({ weight: 1, arbitrary: polite }, { weight: 5, arbitrary: rubbish });
}
