import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { HttpServer } from '../http-server.ts';
import type { OriginRules } from './origin-guard.ts';
import { createTestServer, talk } from '../../../../tests/support/test-server.ts';

const known: ReadonlySet<string> = new Set(['127.0.0.1', 'localhost', '::1', 'ops.internal']);
const serverWith = (rules: Partial<OriginRules>): HttpServer =>
  createTestServer({
    origin: {
      acceptsHost: (name) => known.has(name),
      mode: 'local',
      cookiePrefix: null,
      publicOrigin: null,
      ...rules,
    },
  }).server;
const server = serverWith({});
const open = serverWith({ mode: 'none' });
const published = serverWith({ publicOrigin: 'https://ops.internal' });
const asking = serverWith({ mode: 'required', cookiePrefix: '__Host-redrive' });
const servers = [server, open, published, asking];
before(() => Promise.all(servers.map((one) => one.start())));
after(() => Promise.all(servers.map((one) => one.stop(AbortSignal.timeout(1000)))));

type Sent = Readonly<{
  to?: HttpServer;
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
  to = server,
}: Sent) {
  const lines = Object.entries({ host, connection: 'close', ...headers }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  const answer = await talk(to, `${method} ${path} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
  return Number(answer.split(' ')[1]);
}

type Headers = Readonly<Record<string, string>>;

const post = (headers: Headers, host = '127.0.0.1:8080', to = server) =>
  statusFor({ method: 'POST', path: '/api/v1/things/1/retry', host, headers, to });

/** What the console sends. */
const console = { 'x-redrive-console': '1' };

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
    assert.equal(await post({ ...console, origin: foreign }), 403, foreign);
    assert.equal(await post({ ...console, origin: foreign, 'sec-fetch-site': 'none' }), 403, foreign);
  }
  for (const site of ['cross-site', 'same-site', 'unheard-of']) {
    assert.equal(await post({ ...console, 'sec-fetch-site': site, origin: own }), 403, site);
    assert.equal(await post({ ...console, 'sec-fetch-site': site }), 403, site);
  }
  for (const method of ['PUT', 'PATCH', 'DELETE', 'QUERY'])
    assert.equal(
      await statusFor({ method, headers: { ...console, origin: 'http://127.0.0.1:3000' } }),
      403,
      method,
    );
});

test('same-origin pages and programs can write', async () => {
  assert.equal(await post({}), 200);
  // Node's own fetch.
  assert.equal(await post({ 'sec-fetch-mode': 'cors' }), 200);
  assert.equal(await post({ ...console, origin: 'http://127.0.0.1:8080' }), 200);
  assert.equal(
    await post({ ...console, 'sec-fetch-site': 'same-origin', origin: 'http://127.0.0.1:8080' }),
    200,
  );
  assert.equal(await post({ ...console, 'sec-fetch-site': 'none' }), 200);
  assert.equal(await post({ ...console, origin: 'https://ops.internal' }, 'ops.internal'), 200);
  assert.equal(await post({ ...console, origin: 'https://ops.internal' }, 'ops.internal:443'), 200);
});

test('a browser changes nothing without the header of the console, which forms cannot send', async () => {
  for (const headers of [
    { origin: 'http://127.0.0.1:8080' },
    { 'sec-fetch-site': 'same-origin' },
    { 'sec-fetch-site': 'none' },
    { 'sec-fetch-dest': 'empty', 'sec-fetch-site': 'same-origin', 'x-redrive-console': 'yes' },
  ] as Headers[])
    for (const to of [server, open]) assert.equal(await post(headers, '127.0.0.1:8080', to), 403);
  assert.equal(await post({ ...console, 'sec-fetch-dest': 'empty' }), 403, 'says nothing about its origin');
});

test('with a public URL its origin is ours, and no other', async () => {
  const from = (origin: string) => post({ ...console, origin }, 'ops.internal', published);
  assert.equal(await from('https://ops.internal'), 200);
  assert.equal(await from('http://ops.internal'), 403);
  assert.equal(await from('https://ops.internal:444'), 403);
});

test('pages of other sites read no data', async () => {
  for (const site of ['cross-site', 'same-site'])
    for (const method of ['GET', 'HEAD'])
      assert.equal(
        await statusFor({ method, headers: { 'sec-fetch-site': site } }),
        403,
        `${method} ${site}`,
      );
  assert.equal(await statusFor({ headers: { 'sec-fetch-site': 'same-origin' } }), 200);
  assert.equal(await statusFor({ headers: { 'sec-fetch-site': 'none' } }), 200);
});

test('without a login a request that has passed a proxy is refused, but for probes', async () => {
  for (const name of ['x-forwarded-for', 'x-forwarded-proto', 'x-forwarded-host', 'forwarded', 'x-real-ip']) {
    assert.equal(await statusFor({ headers: { [name]: '10.0.0.1' } }), 403, name);
    assert.equal(await statusFor({ path: '/healthz', headers: { [name]: '10.0.0.1' } }), 200, name);
    // Behind a proxy that asks.
    assert.equal(await statusFor({ headers: { [name]: '10.0.0.1' }, to: open }), 200, name);
    assert.equal(await statusFor({ headers: { [name]: '10.0.0.1' }, to: asking }), 200, name);
  }
});

test('a token is no excuse where nobody asks for one', async () => {
  const authorization = 'Bearer x';
  assert.equal(await post({ authorization }, 'rebound.example.com'), 421);
  assert.equal(await post({ authorization, 'sec-fetch-site': 'cross-site' }), 403);
});

test('with a login only the cookie of a session is checked', async () => {
  const to = asking;
  const cookie = 'theme=dark; __Host-redrive=abc';
  const own = { ...console, cookie, 'sec-fetch-site': 'same-origin' };
  assert.equal(await post(own, 'ops.internal', to), 200);
  for (const headers of [{ cookie: '__Host-redrive-login-0=abc' }, { cookie }]) {
    assert.equal(await post(headers, 'ops.internal', to), 403, 'says nothing about its origin');
    assert.equal(
      await post({ ...headers, ...console, 'sec-fetch-site': 'cross-site' }, 'localhost', to),
      403,
    );
    assert.equal(await post({ ...headers, 'sec-fetch-site': 'same-origin' }, 'localhost', to), 403);
    assert.equal(await post({ ...own, ...headers }, 'rebound.example.com', to), 421);
    assert.equal(await statusFor({ headers, host: 'rebound.example.com', to }), 421);
    assert.equal(await statusFor({ headers: { ...headers, 'sec-fetch-site': 'cross-site' }, to }), 403);
  }
  // Neither a program with a token nor a stranger is asked where it comes from.
  for (const headers of [{ authorization: 'Bearer x', cookie }, { cookie: 'theme=dark' }, {}] as Headers[])
    assert.equal(await post(headers, 'any.example.com', to), 200);
  assert.equal(await post({ cookie }, 'a b', to), 400);
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
