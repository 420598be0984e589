import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { InjectOptions } from 'fastify';
import { createTestServer, talk } from '../../../../tests/support/test-server.ts';
import { securityHeaders } from './security-headers.ts';

const hsts = 'strict-transport-security';
const json = { 'content-type': 'application/json' };

const answers: readonly (readonly [status: number, InjectOptions & { url: string }])[] = [
  [200, { url: '/healthz' }],
  [200, { url: '/api/v1/things' }],
  [400, { url: '/api/v1/things?page=x' }],
  [400, { url: '/api/v1/things/%zz' }],
  [404, { url: '/nowhere' }],
  [405, { url: '/healthz', method: 'POST' }],
  [403, { url: '/api/v1/things', method: 'POST', headers: { ...json, 'sec-fetch-site': 'cross-site' } }],
  [413, { url: '/api/v1/things', method: 'POST', headers: json, payload: `"${'x'.repeat(1024 * 1024)}"` }],
  [500, { url: '/api/v1/things/x/fail', method: 'POST' }],
];

test('every answer and refusal has the headers that protect browsers', async () => {
  const { app } = createTestServer().server;
  for (const [status, request] of answers) {
    const { statusCode, headers } = await app.inject(request);
    assert.equal(statusCode, status, request.url);
    for (const [name, value] of Object.entries(securityHeaders))
      assert.equal(headers[name], value, `${request.url} ${name}`);
    assert.equal(headers[hsts], undefined);
  }
});

test('an answer to bytes that are not HTTP has them too', async () => {
  const { server } = createTestServer();
  await server.start();
  try {
    const answer = await talk(server, 'nonsense\r\n\r\n');
    for (const [name, value] of Object.entries(securityHeaders))
      assert.ok(answer.includes(`\r\n${name}: ${value}\r\n`), name);
  } finally {
    await server.stop(AbortSignal.timeout(1000));
  }
});

test('HSTS is sent where the public URL has TLS, or a trusted proxy says so', async () => {
  const hstsOf = async (
    options: Parameters<typeof createTestServer>[0],
    proto?: string,
  ): Promise<unknown> => {
    const headers = proto === undefined ? {} : { 'x-forwarded-proto': proto };
    return (await createTestServer(options).server.app.inject({ url: '/healthz', headers })).headers[hsts];
  };
  const aYear = 'max-age=31536000; includeSubDomains';
  assert.equal(await hstsOf({ isPublicByTls: true }), aYear);
  assert.equal(await hstsOf({ trustedProxies: ['127.0.0.1'] }, 'https'), aYear);
  assert.equal(await hstsOf({ trustedProxies: ['127.0.0.1'] }, 'http'), undefined);
  assert.equal(await hstsOf({}, 'https'), undefined, 'anybody can send the header');
});
