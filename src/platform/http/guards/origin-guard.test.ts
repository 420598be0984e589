import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createTestServer, talk } from '../../../../tests/support/test-server.ts';

const known: ReadonlySet<string> = new Set(['127.0.0.1', 'localhost', '::1', 'ops.internal']);
const { server } = createTestServer({ acceptsHost: (name) => known.has(name) });
before(() => server.start());
after(() => server.stop(AbortSignal.timeout(1000)));

type Sent = Readonly<{
  method?: string;
  path?: string;
  host?: string;
  headers?: Readonly<Record<string, string>>;
}>;

async function statusFor({
  method = 'GET',
  path = '/api/v1/things',
  host = '127.0.0.1',
  headers = {},
}: Sent) {
  const lines = Object.entries({ host, connection: 'close', ...headers }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  const answer = await talk(server, `${method} ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
  return Number(answer.split(' ')[1]);
}

const post = (headers: Readonly<Record<string, string>>, host = '127.0.0.1:8080') =>
  statusFor({ method: 'POST', path: '/api/v1/things/1/retry', host, headers });

test('a request with an unknown host is rejected, reads and writes', async () => {
  for (const host of [
    '0.0.0.0:8080',
    'rebound.example.com',
    'localhost.example.com:8080',
    '[::]:8080',
    '127.0.0.1.nip.io',
  ]) {
    for (const path of ['/api/v1/things', '/openapi.json', '/docs/', '/nowhere']) {
      assert.equal(await statusFor({ host, path }), 421, `${host} ${path}`);
    }
    assert.equal(await post({}, host), 421, host);
  }
});

test('a request with a local or an allowed host is served', async () => {
  for (const host of [
    '127.0.0.1',
    'localhost:8080',
    'LOCALHOST',
    'localhost.',
    '[::1]:8080',
    '127.1',
    'ops.internal:80',
  ]) {
    assert.equal(await statusFor({ host }), 200, host);
    assert.equal(await post({}, host), 200, host);
  }
});

test('probes and scrapes are served with any host', async () => {
  for (const path of ['/healthz', '/readyz', '/metrics'])
    assert.equal(await statusFor({ path, host: '10.1.2.3:8080' }), 200, path);
});

test('a duplicate or invalid host header is rejected', async () => {
  const twice =
    'GET /api/v1/things HTTP/1.1\r\nHost: 127.0.0.1\r\nhOsT: rebound.example.com\r\nConnection: close\r\n\r\n';
  assert.match(await talk(server, twice), /^HTTP\/1\.1 400 [^]*more than one host header/);
  for (const host of ['', 'a b', 'user@127.0.0.1', '127.0.0.1/x', '127.0.0.1:port', '['])
    assert.equal(await statusFor({ host }), 400, host);
});

test('a cross-origin page cannot write, whichever headers its browser sends', async () => {
  const own = 'http://127.0.0.1:8080';
  for (const foreign of [
    'https://evil.example.com',
    'http://127.0.0.1:3000',
    'http://localhost:8080',
    'null',
    'file://',
    'x',
  ]) {
    assert.equal(await post({ origin: foreign }), 403, foreign);
    assert.equal(await post({ origin: foreign, 'sec-fetch-site': 'none' }), 403, foreign);
  }
  for (const site of ['cross-site', 'same-site', 'unheard-of']) {
    assert.equal(await post({ 'sec-fetch-site': site, origin: own }), 403, site);
    assert.equal(await post({ 'sec-fetch-site': site }), 403, site);
  }
  for (const method of ['PUT', 'PATCH', 'DELETE', 'QUERY'])
    assert.equal(await statusFor({ method, headers: { origin: 'http://127.0.0.1:3000' } }), 403, method);
});

test('same-origin pages and programs can write', async () => {
  assert.equal(await post({}), 200);
  assert.equal(await post({ origin: 'http://127.0.0.1:8080' }), 200);
  assert.equal(await post({ 'sec-fetch-site': 'same-origin', origin: 'http://127.0.0.1:8080' }), 200);
  assert.equal(await post({ 'sec-fetch-site': 'none' }), 200);
  assert.equal(await post({ origin: 'https://ops.internal' }, 'ops.internal'), 200);
  assert.equal(await post({ origin: 'https://ops.internal' }, 'ops.internal:443'), 200);
});

test('other sites can link to our pages', async () => {
  assert.equal(await statusFor({ path: '/docs/', headers: { 'sec-fetch-site': 'cross-site' } }), 200);
});

test('any wrong method is 405 with the allowed methods, whatever the body', async () => {
  for (const method of ['QUERY', 'PUT', 'PROPFIND', 'TRACE', 'OPTIONS', 'DELETE']) {
    for (const body of ['', '{', '{}']) {
      const request = `${method} /api/v1/things HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\ncontent-length: ${body.length}\r\nconnection: close\r\n\r\n${body}`;
      assert.match(
        await talk(server, request),
        /^HTTP\/1\.1 405 [^]*\r\nallow: GET, HEAD, POST\r\n/i,
        request,
      );
    }
  }
});
