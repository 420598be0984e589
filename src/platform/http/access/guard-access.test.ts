import assert from 'node:assert/strict';
import { test } from 'node:test';
import { localPrincipal, type Grant, type Principal } from '../../../kernel/access/principal.ts';
import { AppError } from '../../../kernel/errors.ts';
import { createTestServer } from '../../../../tests/support/test-server.ts';
import { namesFor, ownFor } from './guard-access.ts';
import type { ItemScope, RouteAccess } from './route-access.ts';

const permission = 'jobs:jobs:view';
const principalWith = (...scopes: Grant['scopes']): Principal => ({
  type: 'user',
  id: 'https://idp.example.com|7',
  name: 'Ada',
  roles: [],
  grants: [{ role: 'x', permissions: new Set([permission]), scopes }],
});

async function statusOf(access: RouteAccess, principal: Principal, path = '/api/v1/guarded/mail') {
  const { server } = createTestServer({ authenticate: () => principal });
  server.addRoutes('guarded', (app) =>
    app.get('/api/v1/guarded/:queue', { config: { access } }, (request) => ({
      names: namesFor(request),
      ...(typeof access === 'object' && access.own !== undefined ? { own: ownFor(request) } : {}),
    })),
  );
  const { statusCode, body } = await server.app.inject(path);
  return { statusCode, body: JSON.parse(body) as Record<string, unknown> };
}

test('a route that does not declare who may call it stops the start', async () => {
  const { server } = createTestServer();
  server.addRoutes('open', (app) => app.get('/api/v1/open', () => ({})));
  await assert.rejects(
    async () => server.app.ready(),
    /GET \/api\/v1\/open does not declare who may call it/,
  );
});

test('a public route asks nobody; every other one asks who calls before it reads the body', async () => {
  const missing = new AppError('SYS_AUTH_MISSING_TOKEN', 'unauthenticated', 'send a token');
  const { server } = createTestServer({ authenticate: () => Promise.reject(missing) });
  assert.equal((await server.app.inject('/healthz')).statusCode, 200);
  const refused = await server.app.inject({ method: 'POST', url: '/api/v1/things', payload: '{' });
  assert.equal(refused.statusCode, 401);
  assert.equal(refused.headers['www-authenticate'], 'Bearer realm="redrive"');
  for (const path of ['/openapi.json', '/docs/', '/metrics', '/api/v1/things'])
    assert.equal((await server.app.inject(path)).statusCode, 401, path);
  assert.equal((await server.app.inject('/nowhere')).statusCode, 404);
});

test('a principal without the permission gets 403, and the code says so', async () => {
  const nobody: Principal = { ...localPrincipal, grants: [] };
  const { statusCode, body } = await statusOf({ permission }, nobody);
  assert.equal(statusCode, 403);
  assert.equal((body['error'] as { code: string }).code, 'SYS_AUTH_PERMISSION_DENIED');
});

test('a route without scope refuses a narrowed role', async () => {
  assert.equal((await statusOf({ permission }, principalWith())).statusCode, 200);
  assert.equal((await statusOf({ permission }, principalWith({ queues: ['*'] }))).statusCode, 403);
});

test('a list knows the names that it may show', async () => {
  const access: RouteAccess = { permission, scope: { by: 'queues', in: 'list' } };
  assert.deepEqual((await statusOf(access, principalWith())).body, { names: null });
  assert.deepEqual((await statusOf(access, principalWith({ queues: ['m*'] }))).body, { names: [[['m*']]] });
  assert.deepEqual((await statusOf(access, principalWith({ topics: ['m*'] }))).body, { names: [] });
});

test('whoever may only add items sees its own, in the names of the role that lets it add', async () => {
  const access: RouteAccess = {
    permission,
    own: ['jobs:jobs:enqueue'],
    scope: { by: 'queues', in: 'list' },
  };
  const adding = (...scopes: Grant['scopes']): Grant => ({
    role: 'y',
    permissions: new Set(['jobs:jobs:enqueue']),
    scopes,
  });
  const producer = { ...principalWith(), grants: [adding({ queues: ['m*'] })] };
  const subject = 'user:https://idp.example.com|7';
  const own = { subject, names: [[['m*']]] };
  assert.deepEqual((await statusOf(access, producer)).body, { names: [], own });
  const both = { ...producer, grants: [...principalWith({ queues: ['a'] }).grants, ...producer.grants] };
  assert.deepEqual((await statusOf(access, both)).body, { names: [[['a']]], own });
  assert.deepEqual((await statusOf(access, principalWith())).body, { names: null, own: null });
  assert.deepEqual((await statusOf(access, { ...producer, grants: [] })).statusCode, 403);
});

test('an item out of scope is refused, as not found where the route says how', async () => {
  const item = {
    by: 'queues',
    in: 'item',
    namesOf: async ({ params }) => [(params as { queue: string }).queue],
  } satisfies ItemScope;
  const notFound = () => new AppError('SYS_GUARDED_NOT_FOUND', 'not_found', 'no such queue');
  const mail = principalWith({ queues: ['mail'] });
  assert.equal((await statusOf({ permission, scope: item }, mail)).statusCode, 200);
  assert.equal((await statusOf({ permission, scope: item }, mail, '/api/v1/guarded/sms')).statusCode, 403);
  const hidden = await statusOf({ permission, scope: { ...item, notFound } }, mail, '/api/v1/guarded/sms');
  assert.equal(hidden.statusCode, 404);
});
