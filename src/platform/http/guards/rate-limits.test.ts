import assert from 'node:assert/strict';
import { test } from 'node:test';
import { localPrincipal, type Principal } from '../../../kernel/access/principal.ts';
import { createTestServer } from '../../../../tests/support/test-server.ts';
import type { ErrorBody } from '../errors/error-answer.ts';

const ada: Principal = { ...localPrincipal, type: 'user', id: 'issuer|ada' };

function limitedApp() {
  const callers: Readonly<Record<string, Principal>> = { ada, grace: { ...ada, id: 'issuer|grace' } };
  const { server } = createTestServer({
    authenticate: ({ headers }) => callers[String(headers['x-caller'])] ?? localPrincipal,
  });
  server.addRoutes('heavy', (app) => {
    const config = { access: 'authenticated', heavy: true } as const;
    app.post('/api/v1/heavy/plan', { config }, () => ({ planned: true }));
    app.post('/api/v1/heavy/other', { config }, () => ({ planned: true }));
    const isExport = ({ headers }: { headers: { accept?: string | undefined } }): boolean =>
      headers.accept === 'application/x-ndjson';
    app.get('/api/v1/heavy/list', { config: { ...config, heavy: isExport } }, () => ({ items: [] }));
    app.get('/auth/login', { config: { access: 'public' } }, () => ({ login: true }));
    app.get('/auth/callback', { config: { access: 'public' } }, () => ({ login: true }));
  });
  return server.app;
}

test('a principal gets ten heavy requests of a kind in a minute, then 429 with Retry-After', async () => {
  const app = limitedApp();
  const statusFor = async (caller: string, what = 'plan'): Promise<number> =>
    (await app.inject({ method: 'POST', url: `/api/v1/heavy/${what}`, headers: { 'x-caller': caller } }))
      .statusCode;
  for (let i = 0; i < 10; i += 1) assert.equal(await statusFor('ada'), 200);
  const refused = await app.inject({
    method: 'POST',
    url: '/api/v1/heavy/plan',
    headers: { 'x-caller': 'ada' },
  });
  assert.equal(refused.statusCode, 429);
  assert.match(refused.json<ErrorBody>().error.code, /^SYS_RATE_LIMIT_EXCEEDED$/);
  const retryAfter = Number(refused.headers['retry-after']);
  assert.ok(retryAfter > 50 && retryAfter <= 60, String(retryAfter));
  assert.equal(await statusFor('grace'), 200, 'another principal');
  assert.equal(await statusFor('ada', 'other'), 200, 'another kind');
});

test('without authentication nobody is limited, because everybody is the same principal', async () => {
  const app = limitedApp();
  for (let i = 0; i < 12; i += 1)
    assert.equal((await app.inject({ method: 'POST', url: '/api/v1/heavy/plan' })).statusCode, 200);
});

test('only what a route calls heavy counts', async () => {
  const app = limitedApp();
  const get = async (accept: string): Promise<number> =>
    (await app.inject({ url: '/api/v1/heavy/list', headers: { 'x-caller': 'ada', accept } })).statusCode;
  for (let i = 0; i < 12; i += 1) assert.equal(await get('application/json'), 200);
  for (let i = 0; i < 10; i += 1) assert.equal(await get('application/x-ndjson'), 200);
  assert.equal(await get('application/x-ndjson'), 429);
  assert.equal(await get('application/json'), 200);
});

test('an address gets sixty requests below /auth/ in a minute, whatever they ask', async () => {
  const app = limitedApp();
  const login = async (url: string, remoteAddress: string): Promise<number> =>
    (await app.inject({ url, remoteAddress })).statusCode;
  for (let i = 0; i < 30; i += 1) {
    assert.equal(await login('/auth/login', '2001:db8:0:1::1'), 200);
    assert.equal(await login('/auth/callback', `2001:db8:0:1::${i}`), 200);
  }
  assert.equal(await login('/auth/login', '2001:db8:0:1:ffff::1'), 429, 'the same network');
  assert.equal(await login('/auth/login', '2001:db8:0:2::1'), 200, 'another network');
});
