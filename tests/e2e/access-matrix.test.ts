import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { mayAnywhere } from '../../src/kernel/access/principal.ts';
import { grantsOfRole } from '../../src/kernel/access/roles.ts';
import type { DeclaredRoute } from '../../src/platform/http/access/route-access.ts';
import { everyRole, startGuardedSystem, type GuardedSystem } from '../support/guarded-system.ts';

/** Every route is called as every role, from what the routes declare: nothing is listed here. */
let guarded: GuardedSystem;
let routes: readonly DeclaredRoute[];
before(async () => {
  guarded = await startGuardedSystem();
  routes = await guarded.system.routes();
});
after(() => guarded.drop());

const someId = '01a1dfae-c3a5-7000-8007-f35eedc32390';

function pathOf({ path }: DeclaredRoute): string {
  return path
    .replace(/:(partition)/, '0')
    .replace(/:(id|saga_id)\b/, someId)
    .replaceAll(/:[a-z_]+/g, 'out-x');
}

/** Streams are not read. */
async function call(
  route: DeclaredRoute,
  token: string | null,
): Promise<Readonly<{ status: number; code: string }>> {
  const abort = new AbortController();
  const response = await fetch(`${guarded.system.url}${pathOf(route)}`, {
    method: route.method,
    redirect: 'manual',
    signal: AbortSignal.any([abort.signal, AbortSignal.timeout(20_000)]),
    headers: token === null ? {} : { authorization: `Bearer ${token}` },
  });
  const { status } = response;
  const text = status >= 400 ? await response.text() : '';
  abort.abort();
  const code = text.startsWith('{"error"')
    ? (JSON.parse(text) as { error: { code: string } }).error.code
    : '';
  return { status, code };
}

const nameOf = ({ method, path }: DeclaredRoute): string => `${method} ${path}`;

test('every route but the public ones refuses a caller without a token', async () => {
  assert.ok(routes.length > 60, String(routes.length));
  for (const route of routes) {
    const { status, code } = await call(route, null);
    if (route.access === 'public') assert.notEqual(status, 401, nameOf(route));
    else assert.deepEqual([status, code], [401, 'SYS_AUTH_MISSING_TOKEN'], nameOf(route));
  }
  const open = routes.filter(({ access }) => access === 'public').map(nameOf);
  // The pages of the console hold no data: it asks the API for it.
  const isPage = /^GET \/(activity|dlq|inbox|jobs|outbox|sagas|system)(\/\*)?$/;
  assert.deepEqual(open.filter((name) => !isPage.test(name)).toSorted(), [
    'GET /',
    'GET /assets/*',
    'GET /auth/callback',
    'GET /auth/config',
    'GET /auth/login',
    'GET /healthz',
    'GET /readyz',
    'POST /auth/logout',
  ]);
});

for (const role of everyRole)
  test(`${role} may call the routes for which it has the permission, and no others`, async () => {
    const token = await guarded.tokenOf([role]);
    const grants = grantsOfRole(role, new Map());
    for (const route of routes) {
      const { access } = route;
      const isAllowed =
        typeof access === 'string' ||
        [access.permission, ...(access.own ?? [])].some((permission) => mayAnywhere({ grants }, permission));
      const { status, code } = await call(route, token);
      if (isAllowed) assert.ok(status !== 401 && status !== 403, `${nameOf(route)}: ${status} ${code}`);
      else assert.deepEqual([status, code], [403, 'SYS_AUTH_PERMISSION_DENIED'], nameOf(route));
    }
  });

for (const role of everyRole)
  test(`a narrowed ${role} may call no route that knows no scope`, async () => {
    const token = await guarded.tokenOf([`narrow_${role}`]);
    for (const route of routes) {
      const { access } = route;
      if (typeof access === 'string' || access.scope !== undefined) continue;
      const { status, code } = await call(route, token);
      assert.deepEqual([status, code], [403, 'SYS_AUTH_PERMISSION_DENIED'], nameOf(route));
    }
  });
