import assert from 'node:assert/strict';
import { test } from 'node:test';
import { gzipSync } from 'node:zlib';
import { Type } from 'typebox';
import type { ErrorBody } from '../errors/error-answer.ts';
import { createTestServer } from '../../../../tests/support/test-server.ts';

/** Two routes that take the same body; one of them keeps what it is sent, so it wants it exact. */
const { server } = createTestServer();
const schema = {
  body: Type.Object({ value: Type.Optional(Type.Unknown()) }, { additionalProperties: false }),
};
server.addRoutes('kept', (app) => {
  app.post(
    '/api/v1/kept',
    { config: { access: 'authenticated', exactJson: true }, schema },
    (request) => request.body,
  );
  app.post('/api/v1/loose', { config: { access: 'authenticated' }, schema }, (request) => request.body);
});

const post = (path: string, payload: string, type = 'application/json') =>
  server.app.inject({ method: 'POST', url: `/api/v1/${path}`, headers: { 'content-type': type }, payload });

async function flawOf(payload: string): Promise<ErrorBody['error']['details'][number] | undefined> {
  const response = await post('kept', payload);
  assert.equal(response.statusCode, 400, response.body);
  const { error } = response.json<ErrorBody>();
  assert.equal(error.code, 'SYS_KEPT_VALIDATION_ERROR');
  return error.details[0];
}

test('a route with exactJson rejects JSON that parsing would change, and names the field', async () => {
  assert.equal((await flawOf('{"value":1,"value":1}'))?.reason, 'duplicate_key');
  const twice = await flawOf('{"value":{"a":[{"b":1,"\\u0062":2}]}}');
  assert.deepEqual([twice?.field, twice?.reason], ['value.a.0.b', 'duplicate_key']);
  for (const number of ['9007199254740993', '0.1000000000000000055511151231257827', '1e400', '1e-400']) {
    const inexact = await flawOf(`{"value":{"n":${number}}}`);
    assert.deepEqual([inexact?.field, inexact?.reason], ['value.n', 'inexact_number'], number);
  }
});

test('other routes parse JSON as usual', async () => {
  const response = await post('loose', '{"value":1,"value":9007199254740993}');
  assert.equal(response.statusCode, 200);
  assert.deepEqual(response.json(), { value: 9007199254740992 });
});

test('exactJson accepts all other JSON', async () => {
  const body = '{"value":[10000.0,1e2,0.1,-0,9007199254740992,{"a":1},{"a":1},"a","a"]}';
  const response = await post('kept', body);
  assert.equal(response.statusCode, 200, response.body);
  assert.deepEqual(response.json(), {
    value: [10000, 100, 0.1, 0, 9007199254740992, { a: 1 }, { a: 1 }, 'a', 'a'],
  });
});

test('a route with exactJson rejects all that other routes reject', async () => {
  assert.equal((await flawOf('{"value":'))?.reason, 'syntax');
  assert.equal((await flawOf('{"value":"\\u0000"}'))?.reason, 'unstorable_text');
  assert.equal((await flawOf('{"value":1,"__proto__":1}'))?.reason, 'forbidden_key');
  assert.equal((await flawOf('{"more":1}'))?.reason, 'additional_properties');
  const deep = '['.repeat(20_000) + ']'.repeat(20_000);
  assert.equal((await flawOf(`{"value":${deep}}`))?.reason, 'max_depth');
  assert.equal((await post('kept', '{}', 'text/plain')).statusCode, 415);
  assert.equal((await post('kept', '')).statusCode, 200);
});

test('a compressed body is rejected before it is read', async () => {
  const payload = gzipSync('{"value":1}');
  for (const encoding of ['gzip', 'br', 'deflate', 'identity, gzip', 'x-unheard-of']) {
    const response = await server.app.inject({
      method: 'POST',
      url: '/api/v1/kept',
      headers: { 'content-type': 'application/json', 'content-encoding': encoding },
      payload,
    });
    assert.equal(response.statusCode, 415, encoding);
    assert.equal(response.headers['accept-encoding'], 'identity');
  }
  for (const encoding of ['identity', 'Identity', '']) {
    const headers = { 'content-type': 'application/json', 'content-encoding': encoding };
    const response = await server.app.inject({ method: 'POST', url: '/api/v1/kept', headers, payload: '{}' });
    assert.equal(response.statusCode, 200, encoding);
  }
});

test('a body whose numbers take too much space without exponents is rejected', async () => {
  const numbers = `{"value":[${'1e308,'.repeat(10_000)}1]}`;
  for (const path of ['kept', 'loose']) {
    const response = await post(path, numbers);
    assert.equal(response.statusCode, 413, response.body);
    const { error } = response.json<ErrorBody>();
    assert.equal(error.code, 'SYS_KEPT_TOO_LARGE');
    assert.equal(error.details[0]?.reason, 'written_size');
    assert.match(error.message, /takes \d{7} bytes .*the limit is 1048576/);
  }
  assert.equal((await post('kept', `{"value":[${'1e308,'.repeat(1000)}1]}`)).statusCode, 200);
});

test('a megabyte of brackets is rejected before parsing', async (t) => {
  const { mock } = t.mock.method(JSON, 'parse');
  for (const text of [
    '['.repeat(1_000_000),
    `${'['.repeat(500_000)}${']'.repeat(500_000)}`,
    '{"a":'.repeat(200_000),
  ])
    for (const path of ['kept', 'loose']) {
      const response = await post(path, text);
      assert.equal(response.statusCode, 400);
      assert.match(response.body, /max_depth/);
    }
  assert.equal(mock.callCount(), 0);
});
