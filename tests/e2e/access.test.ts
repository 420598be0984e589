import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError } from '../support/api-client.ts';
import { startGuardedSystem, type GuardedSystem } from '../support/guarded-system.ts';
import { runRedrive } from '../support/redrive-process.ts';

let guarded: GuardedSystem;
before(async () => void (guarded = await startGuardedSystem()));
after(() => guarded.drop());

type Me = Readonly<{
  subject: string;
  name: string;
  type: string;
  roles: readonly string[];
  permissions: string[];
}>;

test('without a token only health and readiness answer', async () => {
  const { api } = guarded.system;
  assert.equal((await api.get('/healthz')).status, 200);
  const ready = await api.get<{ status: string; checks: object }>('/readyz');
  assert.deepEqual([ready.status, ready.body.status, ready.body.checks], [200, 'healthy', {}]);
  for (const path of ['/api/v1/me', '/api/v1/jobs', '/openapi.json', '/docs/', '/metrics']) {
    const refused = await api.get(path);
    assertError(refused, 401, 'SYS_AUTH_MISSING_TOKEN');
    assert.equal(refused.headers.get('www-authenticate'), 'Bearer realm="redrive"');
  }
  assertError(await api.get('/api/v1/me', { 'x-actor': 'ada' }), 401);
  assertError(await api.get('/api/v1/me', { authorization: 'Basic YTpi' }), 401, 'SYS_AUTH_MISSING_TOKEN');
});

test('a token of the provider tells who calls and what that allows', async () => {
  const { body } = await guarded.withToken(await guarded.issuer.issue('sys_operator')).get<Me>('/api/v1/me');
  assert.equal(body.subject, `user:${guarded.issuer.url}|sys_operator`);
  assert.deepEqual([body.type, body.roles], ['service', ['sys_operator']]);
  assert.ok(body.permissions.includes('dlq:messages:retry'));
  assert.ok(!body.permissions.includes('dlq:messages:delete'));
});

test('an expired or forged token says so', async () => {
  const expired = await guarded.as(['sys_admin'], { exp: 1 });
  const refused = await expired.get('/api/v1/jobs');
  assertError(refused, 401, 'SYS_AUTH_TOKEN_EXPIRED');
  assert.equal(refused.headers.get('www-authenticate'), 'Bearer realm="redrive", error="invalid_token"');
  const forged = await guarded.as(['sys_admin'], { aud: 'another-service' });
  assertError(await forged.get('/api/v1/jobs'), 401, 'SYS_AUTH_TOKEN_INVALID');
});

test('a token without a role may do nothing but ask who it is', async () => {
  const stranger = await guarded.as(['something-else']);
  assert.deepEqual((await stranger.get<Me>('/api/v1/me')).body.permissions, []);
  assertError(await stranger.get('/api/v1/jobs'), 403, 'SYS_AUTH_PERMISSION_DENIED');
});

test('the actor is the principal, whatever the header says', async () => {
  const admin = await guarded.as(['sys_admin'], { sub: 'grace' });
  const queued = await admin.post<{ job_id: string }>('/api/v1/jobs', { queue: 'mail', payload: {} });
  const id = queued.body.job_id;
  await admin.post(`/api/v1/jobs/${id}/cancel`, { reason: 'a test' }, { 'x-actor': 'somebody-else' });
  const { text } = await admin.get(`/api/v1/jobs/${id}`);
  assert.match(text, new RegExp(`"user:${guarded.issuer.url}\\|grace"`));
  assert.doesNotMatch(text, /somebody-else/);
});

type Made = Readonly<{ id: string; key: string }>;

test('an API key has the rights of its role, and no secret is stored', async () => {
  const admin = await guarded.as(['sys_admin'], { sub: 'keeper' });
  const made = await admin.post<Made>('/api/v1/keys', { name: 'nightly', role: 'sys_auditor' });
  assert.equal(made.status, 201, made.text);
  assert.match(made.body.key, /^rdk_[a-z0-9]{8}_[\w-]{43}$/);
  const key = guarded.withToken(made.body.key);
  const me = await key.get<Me>('/api/v1/me');
  assert.deepEqual(
    [me.body.subject, me.body.type, me.body.roles],
    [`key:${made.body.id}`, 'api_key', ['sys_auditor']],
  );
  assert.equal((await key.get('/api/v1/jobs')).status, 200);
  assertError(await key.post('/api/v1/jobs', { queue: 'mail', payload: {} }), 403);
  const secret = made.body.key.slice(13);
  const [row] = await guarded.system.db.query<{ row: string }>(sql`
    SELECT to_jsonb(k)::text AS row FROM access.api_keys k WHERE id = ${made.body.id}`);
  assert.ok(row !== undefined && !row.row.includes(secret));
  const listed = await admin.get('/api/v1/keys');
  assert.ok(listed.text.includes(made.body.id) && !listed.text.includes(secret));
});

test('a wrong, unknown or malformed key is refused', async () => {
  const admin = await guarded.as(['sys_admin']);
  const { body } = await admin.post<Made>('/api/v1/keys', { name: 'one', role: 'worker' });
  const wrong = [
    `${body.key.slice(0, -1)}${body.key.endsWith('A') ? 'B' : 'A'}`,
    `rdk_aaaaaaaa_${body.key.slice(13)}`,
    body.key.slice(0, -1),
    `${body.key}A`,
    'rdk_',
    `rdk_${body.id}_${'\u0041'.repeat(43)}`,
  ];
  for (const key of wrong)
    assertError(await guarded.withToken(key).get('/api/v1/me'), 401, 'SYS_AUTH_TOKEN_INVALID');
});

test('the command line sends a token or an API key from its environment', async () => {
  const admin = await guarded.as(['sys_admin']);
  const { body } = await admin.post<Made>('/api/v1/keys', { name: 'cli', role: 'sys_auditor' });
  const env = { REDRIVE_URL: guarded.system.url };
  const refused = await runRedrive(['jobs', 'queues'], env);
  assert.match(refused.err, /send a token or an API key/);
  for (const more of [
    { REDRIVE_API_KEY: body.key },
    { REDRIVE_TOKEN: await guarded.tokenOf(['sys_auditor']) },
  ]) {
    const listed = await runRedrive(['jobs', 'queues'], { ...env, ...more });
    assert.equal(listed.code, 0, listed.err);
  }
  const both = await runRedrive(['jobs', 'queues'], { ...env, REDRIVE_API_KEY: 'a', REDRIVE_TOKEN: 'b' });
  assert.match(both.err, /REDRIVE_TOKEN and REDRIVE_API_KEY are both set/);
});

test('an expired key is refused', async () => {
  const admin = await guarded.as(['sys_admin']);
  const { body } = await admin.post<Made>('/api/v1/keys', {
    name: 'old',
    role: 'sys_auditor',
    expires_in_days: 1,
  });
  await guarded.system.db.query(sql`
    UPDATE access.api_keys SET expires_at = clock_timestamp() WHERE id = ${body.id}`);
  assertError(await guarded.withToken(body.key).get('/api/v1/me'), 401, 'SYS_AUTH_TOKEN_EXPIRED');
});

test('a key lives 90 days unless asked, 365 at most, and its use is noted to the minute', async () => {
  const admin = await guarded.as(['sys_admin'], { sub: 'counter' });
  const make = (more: object) =>
    admin.post<Made & { expires_at: string; created_at: string }>('/api/v1/keys', {
      name: 'timed',
      role: 'sys_auditor',
      ...more,
    });
  const daysOf = ({ body }: Awaited<ReturnType<typeof make>>) =>
    Math.round((Date.parse(body.expires_at) - Date.parse(body.created_at)) / 86_400_000);
  const usual = await make({});
  assert.equal(daysOf(usual), 90);
  assert.equal(daysOf(await make({ expires_in_days: 365 })), 365);
  for (const days of [0, 366, -1, 1.5])
    assertError(await make({ expires_in_days: days }), 400, 'SYS_ACCESS_VALIDATION_ERROR');
  const lastUse = async () => {
    const [row] = await guarded.system.db.query<{ at: Date | null }>(sql`
      SELECT last_used_at AS at FROM access.api_keys WHERE id = ${usual.body.id}`);
    return row?.at?.getTime() ?? null;
  };
  assert.equal(await lastUse(), null);
  const key = guarded.withToken(usual.body.key);
  const deadline = performance.now() + 3000;
  while ((await lastUse()) === null) {
    assert.equal((await key.get('/api/v1/me')).status, 200);
    assert.ok(performance.now() < deadline, 'the use was not noted');
  }
  assert.equal(((await lastUse()) ?? 1) % 60_000, 0);
});

test('a key cannot make keys, and gives no more than its maker has', async () => {
  const admin = await guarded.as(['sys_admin']);
  const { body } = await admin.post<Made>('/api/v1/keys', { name: 'admin', role: 'sys_admin' });
  const key = guarded.withToken(body.key);
  assertError(await key.post('/api/v1/keys', { name: 'child', role: 'worker' }), 403);
  assertError(
    await (await guarded.as(['sys_operator'])).post('/api/v1/keys', { name: 'x', role: 'worker' }),
    403,
  );
  const unknown = await admin.post('/api/v1/keys', { name: 'x', role: 'nothing' });
  assertError(unknown, 422, 'SYS_ACCESS_UNPROCESSABLE');
});

test('whoever may make keys gives none of them a right that the maker lacks', async (t) => {
  const role = 'key_maker';
  const roles = { [role]: { extends: 'sys_auditor', permissions: ['access:keys:manage'] } };
  const other = await startGuardedSystem({
    auth: { roles, bindings: [{ role, subjects: [`role:${role}`] }] },
  });
  t.after(() => other.drop());
  const maker = await other.as([role]);
  const make = (given: string) => maker.post('/api/v1/keys', { name: 'x', role: given });
  assert.equal((await make('sys_auditor')).status, 201);
  for (const more of ['sys_operator', 'sys_admin', 'worker']) {
    const refused = assertError(await make(more), 403, 'SYS_AUTH_PERMISSION_DENIED');
    assert.match(refused.message, /more than you may do/);
  }
});

test('a key loses the rights that its maker loses', async () => {
  const iat = Math.floor(Date.now() / 1000);
  const maker = await guarded.as(['sys_admin', 'worker'], { sub: 'mallory', iat: iat - 20 });
  const { body } = await maker.post<Made>('/api/v1/keys', { name: 'kept', role: 'sys_operator' });
  const key = guarded.withToken(body.key);
  assert.equal((await key.get('/api/v1/jobs')).status, 200);
  const demoted = await guarded.as(['worker'], { sub: 'mallory', iat: iat - 10 });
  assert.equal((await demoted.get('/api/v1/me')).status, 200);
  assertError(await key.get('/api/v1/jobs'), 403, 'SYS_AUTH_PERMISSION_DENIED');
  assert.equal((await maker.get('/api/v1/me')).status, 200, 'an older token is still valid');
  assertError(await key.get('/api/v1/jobs'), 403, 'SYS_AUTH_PERMISSION_DENIED');
});

test('a revoked key is refused at once, also by other replicas', async () => {
  const admin = await guarded.as(['sys_admin'], { sub: 'revoker' });
  const { body } = await admin.post<Made>('/api/v1/keys', { name: 'short', role: 'sys_auditor' });
  const replica = await guarded.startReplica();
  try {
    const authorization = `Bearer ${body.key}`;
    assert.equal((await replica.api.get('/api/v1/me', { authorization })).status, 200);
    assert.equal((await guarded.withToken(body.key).get('/api/v1/me')).status, 200);
    assert.equal((await admin.delete(`/api/v1/keys/${body.id}`)).status, 200);
    assertError(await guarded.withToken(body.key).get('/api/v1/me'), 401, 'SYS_AUTH_TOKEN_INVALID');
    const deadline = performance.now() + 3000;
    while ((await replica.api.get('/api/v1/me', { authorization })).status !== 401)
      assert.ok(performance.now() < deadline, 'the other replica still accepts the key');
  } finally {
    await replica.stop();
  }
  assertError(await admin.delete('/api/v1/keys/unknown1'), 404, 'SYS_ACCESS_NOT_FOUND');
});

test('whoever may not delete a message may not plan to delete many', async () => {
  const operator = await guarded.as(['sys_operator']);
  const plan = (kind: string) =>
    operator.post('/api/v1/dlq/redrives', { kind, filter: {}, reason: 'not needed' });
  assertError(await plan('delete'), 403, 'SYS_AUTH_PERMISSION_DENIED');
  for (const kind of ['retry', 'reopen', 'dead']) assert.equal((await plan(kind)).status, 202);
});
