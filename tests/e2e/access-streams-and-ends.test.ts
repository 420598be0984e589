import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { assertError, createApiClient, type ApiClient } from '../support/api-client.ts';
import type { Browser } from '../support/browser.ts';
import { startLoginSystem, type LoginSystem } from '../support/login-system.ts';
import type { TestSystem } from '../support/start-system.ts';

/** Two replicas: what ends on one has ended on the other. */
let login: LoginSystem;
let replica: TestSystem;
let admin: ApiClient;
before(async () => {
  login = await startLoginSystem();
  replica = await login.startReplica();
  const token = await login.issuer.sign({ sub: 'grace', roles: ['sys_admin'] });
  admin = createApiClient(replica.url, { authorization: `Bearer ${token}` });
});
after(async () => {
  await replica.stop();
  await login.drop();
});

/** A redrive that nobody starts, so that its stream stays open. */
async function plan(): Promise<string> {
  const body = { kind: 'retry', filter: {}, reason: 'a stream to follow' };
  const planned = await admin.post<{ id: string }>('/api/v1/dlq/redrives', body);
  assert.equal(planned.status, 202, planned.text);
  return planned.body.id;
}

/** Reads until the stream has begun; `ended` resolves when the server ends it. */
async function follow(headers: Readonly<Record<string, string>>) {
  const response = await fetch(`${login.system.url}/api/v1/dlq/redrives/${await plan()}/events`, { headers });
  assert.equal(response.status, 200);
  const reader = response.body?.getReader();
  assert.ok(reader !== undefined);
  await reader.read();
  const ended = (async () => {
    for (;;) if ((await reader.read()).done) return 'ended';
  })().catch(() => 'ended');
  return { ended, cancel: () => reader.cancel() };
}

const cookieOf = (browser: Browser) => ({ cookie: `redrive=${browser.cookies.get('redrive') ?? ''}` });

const within = <T>(promise: Promise<T>): Promise<T> =>
  Promise.race([
    promise,
    new Promise<never>((_, reject) => void setTimeout(() => reject(new Error('goes on')), 5000).unref()),
  ]);

type Made = Readonly<{ id: string; key: string }>;
type Sessions = Readonly<{ sessions: readonly Readonly<{ subject: string; issuer_roles: string[] }>[] }>;

test('a logout and a revoked key end their streams on other replicas, and no others', async () => {
  const [one, other] = [await login.login(), await login.login()];
  const made = await admin.post<Made>('/api/v1/keys', { name: 'follower', role: 'sys_auditor' });
  const streams = {
    one: await follow(cookieOf(one)),
    other: await follow(cookieOf(other)),
    key: await follow({ authorization: `Bearer ${made.body.key}` }),
  };
  let hasOtherEnded = false;
  void streams.other.ended.then(() => (hasOtherEnded = true));
  assert.equal((await one.fetch(`${replica.url}/auth/logout`, { method: 'POST' })).status, 200);
  assert.equal(await within(streams.one.ended), 'ended');
  assert.equal((await admin.delete(`/api/v1/keys/${made.body.id}`)).status, 200);
  assert.equal(await within(streams.key.ended), 'ended');
  assert.equal(hasOtherEnded, false);
  await streams.other.cancel();
});

test('an admin ends all sessions of a person, with the keys and streams', async () => {
  login.people.person.roles = ['sys_admin'];
  const [one, other] = [await login.login(), await login.login()];
  login.people.person.roles = ['sys_operator'];
  const made = await one.fetch(`${login.system.url}/api/v1/keys`, {
    method: 'POST',
    body: '{"name":"of ada","role":"sys_auditor"}',
  });
  assert.equal(made.status, 201, made.text);
  const { key } = made.json as Made;
  const stream = await follow(cookieOf(other));
  const subject = `user:${login.issuer.url}|ada`;
  const listed = await admin.get<Sessions>('/api/v1/sessions');
  const ofAda = listed.body.sessions.filter((session) => session.subject === subject);
  assert.deepEqual(ofAda[0]?.issuer_roles, ['sys_admin']);
  for (const browser of [one, other])
    assert.ok(!listed.text.includes(browser.cookies.get('redrive') ?? 'missing'));

  const ended = await admin.post<{ sessions: number; keys: number }>('/api/v1/sessions/end', {
    subject,
    reason: 'left the company',
  });
  assert.equal(ended.status, 200, ended.text);
  assert.deepEqual([ended.body.sessions, ended.body.keys], [ofAda.length, 1]);
  assert.equal(await within(stream.ended), 'ended');
  for (const url of [login.system.url, replica.url]) {
    for (const browser of [one, other]) {
      const deadline = performance.now() + 3000;
      while ((await browser.fetch(`${url}/api/v1/me`)).status !== 401)
        assert.ok(performance.now() < deadline, 'a session goes on');
    }
    const refused = await createApiClient(url, { authorization: `Bearer ${key}` }).get('/api/v1/me');
    assertError(refused, 401, 'SYS_AUTH_TOKEN_INVALID');
  }
  const [row] = await login.system.db.query<{ detail: object; reason: string }>(sql`
    SELECT detail, reason FROM audit.events WHERE action = 'access:sessions:manage'`);
  assert.deepEqual(row?.detail, { change: 'ended', sessions: ofAda.length, keys: 1 });
  assert.equal(row?.reason, 'left the company');
});

test('only an admin ends sessions of others, and only of a person', async () => {
  const operator = await login.login();
  const end = { method: 'POST', body: JSON.stringify({ subject: 'user:a|b', reason: 'test' }) };
  assert.equal((await operator.fetch(`${login.system.url}/api/v1/sessions/end`, end)).status, 403);
  assert.equal((await operator.fetch(`${login.system.url}/api/v1/sessions`)).status, 200);
  assertError(await admin.post('/api/v1/sessions/end', { subject: 'key:k3x9m2pq', reason: 'test' }), 400);
  const none = await admin.post<{ sessions: number }>('/api/v1/sessions/end', {
    subject: 'user:a|b',
    reason: 'test',
  });
  assert.equal(none.body.sessions, 0);
});
