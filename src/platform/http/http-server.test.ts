import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InjectOptions } from 'fastify';
import { createTestServer } from '../../../tests/support/test-server.ts';
import type { ErrorBody } from './errors/error-answer.ts';

const { server, metrics, logged } = createTestServer();
const { app } = server;

async function refused(request: InjectOptions | string): Promise<ErrorBody['error'] & { status: number }> {
  const response = await app.inject(request);
  assert.match(String(response.headers['content-type']), /^application\/json/);
  const { error } = response.json<ErrorBody>();
  assert.equal(error.request_id, response.headers['x-request-id']);
  return { ...error, status: response.statusCode };
}

const json = (payload: string, url = '/api/v1/things'): InjectOptions => ({
  method: 'POST',
  url,
  headers: { 'content-type': 'application/json' },
  payload,
});

const fail = (how: string): InjectOptions => ({ method: 'POST', url: `/api/v1/things/${how}/fail` });
const nested = (depth: number) => `{"name":"x","value":${'['.repeat(depth)}${']'.repeat(depth)}}`;

async function echoedId(id: string): Promise<string> {
  const response = await app.inject({ url: '/healthz', headers: { 'x-request-id': id } });
  return String(response.headers['x-request-id']);
}

test('liveness returns a constant object', async () => {
  const response = await app.inject('/healthz');
  assert.equal(response.statusCode, 200);
  assert.equal(response.body, '{"status":"ok"}');
});

test('probes ignore the query', async () => {
  assert.equal((await app.inject('/healthz?now=%zz')).statusCode, 200);
});

test('an unknown path is 404 with our error body', async () => {
  const { request_id, ...error } = await refused('/nowhere');
  assert.match(request_id, /^req_[0-9a-f]{12}$/);
  assert.deepEqual(error, { status: 404, code: 'SYS_HTTP_NOT_FOUND', message: 'no such path', details: [] });
});

test('a wrong method is 405 with the allowed methods', async () => {
  const response = await app.inject({ method: 'DELETE', url: '/api/v1/things/x?a=1' });
  assert.equal(response.statusCode, 405);
  assert.equal(response.headers.allow, 'GET, HEAD');
  assert.equal(response.json<ErrorBody>().error.code, 'SYS_HTTP_METHOD_NOT_ALLOWED');
  const encoded = await app.inject({ method: 'PUT', url: '/api/v1/%74hings' });
  assert.equal(encoded.headers.allow, 'GET, HEAD, POST');
});

test('a valid request id is kept, an invalid one replaced', async () => {
  assert.equal(await echoedId('my request-1'), 'my request-1');
  assert.equal(await echoedId('x'.repeat(128)), 'x'.repeat(128));
  for (const id of ['', 'x'.repeat(129), 'tab\tinside', 'm\u00fcll']) {
    assert.match(await echoedId(id), /^req_[0-9a-f]{12}$/);
  }
});

test('the log line of a request has its request id and trace id', async () => {
  const traceId = '0af7651916cd43dd8448eb211c80319c';
  await app.inject({
    url: '/api/v1/things?page=2',
    headers: { 'x-request-id': 'traced', traceparent: `00-${traceId}-b7ad6b7169203331-01` },
  });
  const line = logged().find((entry) => entry['request_id'] === 'traced');
  const { duration_ms, time, ...facts } = line ?? {};
  assert.equal(typeof duration_ms, 'number');
  assert.equal(typeof time, 'string');
  assert.deepEqual(facts, {
    level: 'info',
    service: 'redrive',
    version: '0.1.0',
    environment: 'test',
    request_id: 'traced',
    trace_id: traceId,
    method: 'GET',
    route: '/api/v1/things',
    path: '/api/v1/things',
    address: '127.0.0.1',
    status: 200,
    msg: 'served request',
  });
});

test('numbers, booleans and lists in a query are converted', async () => {
  const url = '/api/v1/things?page=3&page_size=100&archived=true&topic=a&status=DEAD';
  assert.deepEqual((await app.inject(url)).json(), {
    query: { page: 3, page_size: 100, archived: true, topic: ['a'], status: 'DEAD' },
  });
});

test('a number in a query is a plain decimal within its bounds', async () => {
  const wrong = ['1e3', '0x10', '%205', '5%20', '05', '+5', '1.0', '-1', '0', '', '1_000', 'NaN', '1000001'];
  for (const page of [...wrong, '99999999999999999999', '%EF%BC%91']) {
    const error = await refused(`/api/v1/things?page=${page}`);
    assert.equal(error.status, 400, page);
    assert.equal(error.code, 'SYS_THINGS_VALIDATION_ERROR');
    assert.equal(error.details[0]?.field, 'page');
  }
});

test('an unknown, duplicate or invalid parameter is named', async () => {
  const detailsOf = async (query: string) => (await refused(`/api/v1/things?${query}`)).details;
  assert.deepEqual(await detailsOf('colour=red'), [
    { field: 'colour', reason: 'additional_properties', message: 'is unknown' },
  ]);
  assert.deepEqual(await detailsOf('page=1&page=2'), [
    { field: 'page', reason: 'type', message: 'must be integer' },
  ]);
  assert.deepEqual(await detailsOf('page=0'), [
    { field: 'page', reason: 'minimum', message: 'must be >= 1' },
  ]);
  assert.deepEqual(await detailsOf('status=ALIVE'), [
    { field: 'status', reason: 'enum', message: 'must be one of: PENDING, DEAD' },
  ]);
  for (const query of ['page[]=1', '__proto__=1', '__proto__[x]=1', 'constructor=1', 'toString=1', '=1']) {
    assert.equal((await detailsOf(query))[0]?.reason.includes('_'), true, query);
  }
  assert.equal((await refused('/api/v1/things/a?x=1')).details[0]?.field, 'x');
});

test('a body is validated field by field', async () => {
  const { details, message } = await refused(json('{"kind":"huge","extra":1}'));
  assert.deepEqual(details, [
    { field: 'name', reason: 'required', message: 'is required' },
    { field: 'extra', reason: 'additional_properties', message: 'is unknown' },
    { field: 'kind', reason: 'enum', message: 'must be one of: small, large' },
  ]);
  assert.match(message, /^invalid request: /);
  assert.equal((await refused(json('{"name":7}'))).details[0]?.reason, 'type');
  assert.equal((await refused(json('{"name":""}'))).details[0]?.reason, 'min_length');
});

test('a body is never coerced', async () => {
  assert.equal((await refused(json('{"name":["a"]}'))).status, 400);
  for (const body of ['null', '7', '"text"', '[]']) {
    assert.deepEqual((await refused(json(body))).details, [
      { field: 'body', reason: 'type', message: 'must be object' },
    ]);
  }
});

test('a POST without a body is accepted with any content type', async () => {
  for (const type of [undefined, 'application/json', 'text/plain', 'image/png', 'nonsense', ';;', '/']) {
    const headers = type === undefined ? {} : { 'content-type': type };
    const response = await app.inject({ method: 'POST', url: '/api/v1/things/a/retry', headers });
    assert.equal(response.statusCode, 200, String(type));
  }
});

test('a route without a body accepts only an empty object', async () => {
  const url = '/api/v1/things/a/retry';
  assert.equal((await app.inject(json('{}', url))).statusCode, 200);
  assert.equal((await refused(json('{"force":true}', url))).details[0]?.field, 'force');
  assert.equal((await refused(json('[]', url))).status, 400);
  assert.equal((await refused(json('null', url))).status, 400);
});

test('a missing body is reported as missing fields', async () => {
  assert.deepEqual((await refused({ method: 'POST', url: '/api/v1/things' })).details, [
    { field: 'name', reason: 'required', message: 'is required' },
  ]);
});

test('a body that is not JSON is 415, invalid JSON is 400', async () => {
  const plain = await refused({ ...json('name=x'), headers: { 'content-type': 'text/plain' } });
  assert.equal(plain.status, 415);
  assert.equal(plain.code, 'SYS_THINGS_UNSUPPORTED_MEDIA_TYPE');
  assert.equal((await refused({ method: 'POST', url: '/api/v1/things', payload: 'x' })).status, 415);
  for (const body of ['{', '{"name":}', "{'name':'x'}", '\u0000', 'undefined', '{"name":"x"}}']) {
    const error = await refused(json(body));
    assert.equal(error.status, 400, body);
    assert.equal(error.code, 'SYS_THINGS_VALIDATION_ERROR');
  }
  const invalidUtf8 = Buffer.from([0x7b, 0x22, 0xc0, 0x80, 0x22, 0x3a, 0x31, 0x7d]);
  const error = await refused({ ...json(''), payload: invalidUtf8 });
  assert.equal(error.message, 'the body is not valid UTF-8');
});

test('a body above the limit is 413', async () => {
  const error = await refused(json(JSON.stringify({ name: 'x'.repeat(1024 * 1024) })));
  assert.equal(error.status, 413);
  assert.equal(error.code, 'SYS_THINGS_TOO_LARGE');
});

test('text that PostgreSQL cannot store is rejected', async () => {
  const bodies: readonly (readonly [string, string])[] = [
    ['{"name":"a\\u0000b"}', 'name'],
    ['{"name":"x","value":{"deep":["\\ud800"]}}', 'value.deep.0'],
    ['{"name":"x","value":{"\\u0000":1}}', 'value.\ufffd'],
  ];
  for (const [body, field] of bodies) {
    const { details } = await refused(json(body));
    assert.deepEqual([details[0]?.field, details[0]?.reason], [field, 'unstorable_text']);
  }
  assert.equal((await refused('/api/v1/things/a%00b')).details[0]?.field, 'id');
  assert.equal((await refused('/api/v1/things?status=%00')).details[0]?.field, 'status');
});

test('keys that address a prototype are rejected', async () => {
  const { details } = await refused(json('{"name":"x","value":{"__proto__":{"isAdmin":true}}}'));
  assert.deepEqual(details[0], {
    field: 'value.__proto__',
    reason: 'forbidden_key',
    message: 'must not be used as a name',
  });
  assert.equal('isAdmin' in {}, false);
});

test('deep nesting is rejected without exhausting the stack', async () => {
  assert.equal((await app.inject(json(nested(500)))).statusCode, 200);
  assert.equal((await refused(json(nested(600)))).details[0]?.reason, 'max_depth');
  assert.equal((await refused(json(nested(500_000)))).details[0]?.reason, 'max_depth');
});

test('a path or query that is not percent-encoded UTF-8 is rejected', async () => {
  for (const text of ['%zz', '%', '%c0%80', '%ed%a0%80', '%ff']) {
    assert.equal((await refused(`/api/v1/things/${text}`)).status, 400, text);
    assert.equal((await refused(`/api/v1/things?topic=${text}`)).status, 400, text);
    assert.ok([400, 404].includes((await refused(`/nowhere/${text}`)).status), text);
  }
});

test('a path with dots or slashes is a parameter or an unknown path', async () => {
  assert.equal((await app.inject('/api/v1/things/..%2f..%2fetc')).json<{ id: string }>().id, '../../etc');
  for (const url of [
    '/api/v1/things/../../healthz',
    '//healthz',
    '/api/v1/things/a/b',
    '/healthz/',
    '/HEALTHZ',
  ]) {
    assert.equal((await refused(url)).status, 404, url);
  }
  assert.equal((await refused(`/api/v1/things/${'a'.repeat(250)}`)).details[0]?.reason, 'max_length');
});

test('an error of a slice keeps its code, message and status', async () => {
  const { request_id, ...conflict } = await refused(fail('conflict'));
  assert.ok(request_id);
  assert.deepEqual(conflict, {
    status: 409,
    code: 'SYS_THINGS_CONFLICT',
    message: 'thing is not retryable: status=DEAD',
    details: [],
  });
  assert.equal((await app.inject(fail('conflict'))).headers['retry-after'], undefined);
  assert.equal((await app.inject(fail('locked'))).headers['retry-after'], '1');
  assert.equal((await app.inject(fail('busy'))).headers['retry-after'], '2');
  const away = await app.inject(fail('away'));
  assert.equal(away.statusCode, 503);
  assert.equal(away.headers['retry-after'], '1');
});

test('an unexpected error is a 500 without details, and is logged with its cause', async () => {
  for (const how of ['anything', 'internal', 'text', 'nothing']) {
    const error = await refused(fail(how));
    assert.equal(error.status, 500, how);
    assert.equal(error.message, 'internal error');
    assert.deepEqual(error.details, []);
    const lines = logged().filter((line) => line['request_id'] === error.request_id);
    assert.deepEqual(
      lines.map((line) => line['msg']),
      ['request failed', 'served request'],
    );
  }
  const anything = await refused(fail('anything'));
  assert.equal(anything.code, 'SYS_THINGS_INTERNAL_ERROR');
});

test('raw JSON is sent unchanged', async () => {
  const response = await app.inject('/api/v1/things/x');
  assert.equal(
    response.body,
    '{"id":"x","payload":{"big": 12345678901234567890, "huge": 1e400, "b":1, "a":1.10},' +
      '"count":9007199254740993,"beyond":"the schema"}',
  );
  assert.equal(response.headers['content-type'], 'application/json; charset=utf-8');
});

test('the actor is read from the x-actor header', async () => {
  const request = json('{"name":"x"}');
  const headers = { ...request.headers, 'x-actor': 'alice@example.com' };
  assert.equal((await app.inject(request)).json<{ actor: string }>().actor, 'anonymous');
  const named = await app.inject({ ...request, headers });
  assert.equal(named.json<{ actor: string }>().actor, 'alice@example.com');
});

test('metric labels have the route pattern, never client input', async () => {
  await app.inject('/api/v1/things/very-special-name');
  await app.inject('/made/up/by/a/client');
  await app.inject({ method: 'DELETE', url: '/api/v1/things/very-special-name' });
  const text = await metrics.render();
  assert.match(text, /http_requests_total\{method="GET",route="\/api\/v1\/things\/:id",status="200"\} \d/);
  assert.match(text, /http_requests_total\{method="GET",route="unmatched",status="404"\} \d/);
  assert.match(text, /http_request_duration_seconds_bucket\{le="0.005",method="GET",route="\/healthz"/);
  assert.doesNotMatch(text, /very-special-name|made/);
});

test('metrics are served as Prometheus text', async () => {
  const response = await app.inject('/metrics');
  assert.match(String(response.headers['content-type']), /^text\/plain; version=0\.0\.4/);
  assert.match(response.body, /^process_cpu_seconds_total /m);
});

test('the OpenAPI document has every route once and sorted', async () => {
  const document = (await app.inject('/openapi.json')).json<{
    openapi: string;
    paths: Record<string, Record<string, { tags: string[]; responses: Record<string, unknown> }>>;
  }>();
  assert.equal(document.openapi, '3.1.0');
  assert.deepEqual(Object.keys(document.paths), [
    '/api/v1/things',
    '/api/v1/things/{id}',
    '/api/v1/things/{id}/fail',
    '/api/v1/things/{id}/retry',
    '/healthz',
    '/metrics',
    '/openapi.json',
    '/readyz',
  ]);
  assert.deepEqual(Object.keys(document.paths['/api/v1/things'] ?? {}), ['get', 'post']);
  assert.deepEqual(document.paths['/api/v1/things']?.['get']?.tags, ['things']);
  assert.ok(document.paths['/api/v1/things']?.['get']?.responses['default']);
  assert.equal(JSON.stringify(document), JSON.stringify(await server.describe()));
  assert.doesNotMatch(JSON.stringify(document), /~kind|127\.0\.0\.1/);
});

test('the docs page and its script use only this server', async () => {
  const page = await app.inject({ url: '/docs/', headers: { host: 'rebound.example.com' } });
  assert.equal(page.statusCode, 200);
  assert.match(page.body, /<script src="js\/scalar\.js">/);
  assert.match(page.body, /"url": "\/openapi\.json"/);
  assert.doesNotMatch(page.body, /https?:\/\/|rebound/);
  const policy = String(page.headers['content-security-policy']);
  assert.match(policy, /default-src 'none'.*connect-src 'self'/);
  assert.match(policy, /script-src 'self' 'sha256-[\w+/]+={0,2}';/, 'no other inline script');
  const script = await app.inject('/docs/js/scalar.js');
  assert.equal(script.headers['content-type'], 'application/javascript; charset=utf-8');
  assert.ok(script.body.length > 1_000_000);
  assert.equal((await app.inject('/docs')).headers.location, '/docs/');
});
