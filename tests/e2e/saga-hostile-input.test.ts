import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, describe, test } from 'node:test';
import * as fc from 'fast-check';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError, type Answer, type RawRequest } from '../support/api-client.ts';
import { hostileBodies, hostileSegments } from '../support/hostile-input.ts';
import { root, startSagaSystem, step, workflowRoot, type SagaSystem } from '../support/saga-system.ts';

let at: SagaSystem;
let name: string;
let sagaId: string;
before(async () => {
  at = await startSagaSystem({ env: { ROLES: 'api' } });
  name = await at.register([step('a')]);
  sagaId = await at.start(name);
});
after(() => at.drop());

const json = { 'content-type': 'application/json' };
const raw = (request: RawRequest): Promise<Answer> => at.system.api.raw(request);
const post = (path: string, body: string | Buffer, headers: Readonly<Record<string, string>> = {}) =>
  raw({ method: 'POST', path, headers: { ...json, ...headers }, body });
const countSagas = async (): Promise<bigint | undefined> =>
  (await at.system.db.query<{ count: bigint }>(sql`SELECT count(*) AS count FROM saga.saga_states`))[0]
    ?.count;

describe('a new saga is refused with 400, and says why', () => {
  const field = (key: string, value: unknown): string =>
    JSON.stringify({ workflow_name: name, [key]: value });
  const texts = [7, null, '', {}, ['x'], 'x'.repeat(256), 'e\u0301'.repeat(128)];
  const cases: readonly (readonly [what: string, body: () => string, at: string])[] = [
    ['no workflow', () => '{"payload":{}}', 'workflow_name'],
    ['an unknown field', () => field('actor', 'root'), 'actor'],
    ['a status of its own', () => field('status', 'COMPLETED'), 'status'],
    ['an id of its own', () => field('saga_id', randomUUID()), 'saga_id'],
    ...['workflow_name', 'correlation_id', 'initiated_by'].flatMap((key) =>
      texts.map(
        (text, n) =>
          [`the ${key} ${n}: ${JSON.stringify(text).slice(0, 12)}`, () => field(key, text), key] as const,
      ),
    ),
    ...[7, null, 'text', [], [{}], true].map(
      (payload) =>
        [`the payload ${JSON.stringify(payload)}`, () => field('payload', payload), 'payload'] as const,
    ),
    ['NUL', () => '{"workflow_name":"x","payload":{"a":["\\u0000"]}}', 'payload.a.0'],
    ['a lone surrogate', () => '{"workflow_name":"x","correlation_id":"\\ud800"}', 'correlation_id'],
    ['a number too large', () => '{"workflow_name":"x","payload":{"n":9007199254740993}}', 'payload.n'],
    ['a name twice', () => '{"workflow_name":"x","payload":{"a":1,"a":2}}', 'payload.a'],
  ];
  for (const [what, body, place] of cases)
    test(what, async () => {
      const before = await countSagas();
      const { details } = assertError(await post(root, body()), 400, 'SYS_SAGA_VALIDATION_ERROR');
      assert.ok(
        details.some((detail) => detail.field === place && detail.message !== ''),
        JSON.stringify(details),
      );
      assert.equal(await countSagas(), before);
    });

  for (const [what, key] of [
    ['empty', ''],
    ['with a blank', 'a b'],
    ['too long', 'k'.repeat(256)],
    ['beyond ASCII', 'schl\u00fcssel'],
  ] as const)
    test(`a key that is ${what}`, async () => {
      const answer = await post(root, JSON.stringify({ workflow_name: name }), { 'idempotency-key': key });
      assertError(answer, 400, 'SYS_SAGA_VALIDATION_ERROR');
    });

  test('texts of 255 characters are taken, however wide these are', async () => {
    const text = '\u{1F45F}'.repeat(255);
    const started = await at.system.api.post(root, {
      workflow_name: name,
      correlation_id: text,
      initiated_by: text,
    });
    assert.equal(started.status, 201, started.text);
    const list = await at.system.api.get<{ sagas: readonly unknown[] }>(
      `${root}?correlation_id=${encodeURIComponent(text)}`,
    );
    assert.equal(list.body.sagas.length, 1);
  });
});

describe('no path, query or body is answered with 500', () => {
  const isRefused = ({ status, text }: Answer): void => {
    assert.ok(status >= 400 && status < 500, `${status} ${text}`);
    assert.ok(!text.includes('node_modules') && !/\bat .*\.ts:/.test(text), text);
  };

  test('hostile ids, steps and names', async () => {
    for (const segment of hostileSegments) {
      isRefused(await raw({ method: 'GET', path: `${root}/${segment}` }));
      isRefused(await raw({ method: 'GET', path: `${workflowRoot}/x${segment}` }));
      for (const what of ['cancel', 'compensate'])
        isRefused(await post(`${root}/${segment}/${what}`, '{"reason":"x"}'));
      for (const what of ['retry', 'skip', 'resolve'])
        isRefused(await post(`${root}/${sagaId}/steps/x${segment}/${what}`, '{"reason":"x"}'));
    }
  });

  test('hostile bodies', async () => {
    for (const { name: what, body } of hostileBodies)
      for (const path of [
        root,
        workflowRoot,
        `${root}/${sagaId}/cancel`,
        `${root}/${sagaId}/compensate`,
        ...['retry', 'skip', 'resolve'].map((action) => `${root}/${sagaId}/steps/a/${action}`),
      ]) {
        const answer = await post(path, body);
        assert.ok(answer.status === 400, `${what} to ${path}: ${answer.status} ${answer.text}`);
      }
  });

  test('hostile queries', async () => {
    for (const key of ['workflow_name', 'status', 'correlation_id', 'needs_attention', 'page', 'cursor', 'x'])
      for (const value of ['%00', '%ED%A0%80', '%', 'a'.repeat(2000), '1&page=2', '{}', '%27--', '1e9']) {
        const answer = await raw({ method: 'GET', path: `${root}?${key}=${value}` });
        assert.ok(answer.status === 400 || answer.status === 200, `${key}=${value}: ${answer.status}`);
      }
  });

  test('any texts of a workflow', async () => {
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'binary', maxLength: 200 }), async (text) => {
        const answer = await post(workflowRoot, JSON.stringify({ workflow_yaml: text }));
        assertError(answer, 400);
      }),
      { numRuns: 100 },
    );
  });

  test('any JSON as the payload of a saga is stored as it is, or refused', async () => {
    await fc.assert(
      fc.asyncProperty(fc.dictionary(fc.string(), fc.jsonValue()), async (payload) => {
        const answer = await at.system.api.post<{ saga_id: string }>(root, { workflow_name: name, payload });
        if (answer.status === 400) return;
        assert.equal(answer.status, 201, answer.text);
        const told = await at.told(answer.body.saga_id);
        assert.deepEqual(told.saga.payload, JSON.parse(JSON.stringify(payload)));
      }),
      { numRuns: 50 },
    );
  });
});

describe('what a person says of a step is looked at before it is believed', () => {
  const resolve = (body: Readonly<Record<string, unknown>>): Promise<Answer> =>
    at.system.api.post(`${root}/${sagaId}/steps/a/resolve`, { reason: 'x', ...body });

  test('an output belongs to what is done, and is not larger than an answer may be', async () => {
    for (const body of [
      { output: {} },
      { output: null },
      { outcome: 'not_done', output: {} },
      { outcome: 'done', output: 'x'.repeat(262_143) },
      { outcome: 'maybe' },
      { actor: 'root' },
    ])
      assertError(await resolve(body), 400, 'SYS_SAGA_VALIDATION_ERROR');
    assertError(await resolve({ outcome: 'done', output: 'x'.repeat(262_142) }), 409, 'SYS_SAGA_CONFLICT');
  });

  test('an output whose numbers would be rounded is refused', async () => {
    const body = '{"reason":"x","outcome":"done","output":{"id":9007199254740993}}';
    assertError(await post(`${root}/${sagaId}/steps/a/resolve`, body), 400, 'SYS_SAGA_VALIDATION_ERROR');
  });
});
