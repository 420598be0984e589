import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { sql } from '../../src/platform/postgres/sql.ts';
import { openBrowser, type Browser } from '../support/browser.ts';
import { firstSessionKey, startLoginSystem, type LoginSystem } from '../support/login-system.ts';

let login: LoginSystem;
let url: string;
before(async () => {
  login = await startLoginSystem();
  ({ url } = login.system);
});
after(() => login.drop());

type Me = Readonly<{ subject: string; name: string; type: string; roles: readonly string[] }>;

const someId = '01a1dfae-c3a5-7000-8007-f35eedc32390';
const asProgram = { accept: 'application/json' } as const;

const statusOf = async (browser: Browser, at = url) => (await browser.fetch(`${at}/api/v1/me`)).status;

const codeOf = ({ json }: Readonly<{ json: unknown }>) => (json as { error: { code: string } }).error.code;

const statusAfter = async (browser: Browser, back: string) =>
  (await browser.open(back, { until: /\/$/, ...asProgram })).status;

/** The address with which the provider sends the browser back, not opened yet. */
async function comeBack(browser: Browser, from = url): Promise<string> {
  const page = await browser.open(`${from}/auth/login`, { until: /\/auth\/callback\?/ });
  assert.match(page.url, /[?&]code=.*[?&]state=|[?&]state=.*[?&]code=/);
  return page.url;
}

test('a person logs in at the provider, is known by the cookie, and logs out', async () => {
  const browser = openBrowser();
  const landed = await browser.open(`${url}/auth/login?return_to=/dlq/messages%3Fstatus=DEAD`);
  assert.equal(landed.url, `${url}/dlq/messages?status=DEAD`, landed.text);
  const ours = [...browser.cookies.keys()].filter((name) => name.startsWith('redrive'));
  assert.deepEqual(ours, ['redrive'], 'what the login needed is gone');
  const header = browser.received.findLast((line) => line.startsWith('redrive=')) ?? '';
  assert.match(header, /^redrive=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax$/);

  const me = await browser.fetch(`${url}/api/v1/me`);
  assert.equal(me.status, 200, me.text);
  const { subject, name, type, roles } = me.json as Me;
  assert.deepEqual([subject, name, type], [`user:${login.issuer.url}|ada`, 'ada.l', 'user']);
  assert.deepEqual(roles, ['sys_operator']);

  const reference = browser.cookies.get('redrive') ?? '';
  const [stored] = await login.system.db.query<{ row: string }>(sql`
    SELECT to_jsonb(s)::text AS row FROM access.sessions s`);
  assert.ok(stored !== undefined && !stored.row.includes(reference));

  const left = await browser.fetch(`${url}/auth/logout`, { method: 'POST' });
  assert.equal(left.status, 200, left.text);
  const { logout_url: logoutUrl } = left.json as { logout_url: string };
  assert.ok(logoutUrl.startsWith(`${login.issuer.url}/session/end?`), logoutUrl);
  assert.doesNotMatch(logoutUrl, /token/);
  assert.equal(browser.cookies.get('redrive'), undefined);
  browser.cookies.set('redrive', reference);
  const refused = await browser.fetch(`${url}/api/v1/me`);
  assert.deepEqual([refused.status, codeOf(refused)], [401, 'SYS_AUTH_TOKEN_EXPIRED']);
  const again = await browser.fetch(`${url}/auth/logout`, { method: 'POST' });
  assert.equal(again.status, 200, again.text);
  const rows = await login.system.db.query<{ action: string; actor: string }>(sql`
    SELECT action, actor_id AS actor FROM audit.events WHERE action LIKE 'access:sessions:%' ORDER BY seq`);
  assert.deepEqual(
    rows.map(({ action, actor }) => [action, actor]),
    [
      ['access:sessions:login', subject],
      ['access:sessions:logout', subject],
    ],
  );
});

test('a login works once, in the browser that began it, and with nothing changed', async () => {
  const browser = openBrowser();
  const back = await comeBack(browser);
  const failing = async (given: Browser, address: string) => {
    const page = await given.open(address, asProgram);
    assert.deepEqual([page.status, codeOf(page)], [400, 'SYS_AUTH_LOGIN_FAILED'], address);
    assert.equal(await statusOf(given), 401);
  };
  await failing(openBrowser(), back);
  await failing(
    browser,
    back.replace(/state=\d/, (part) => (part.endsWith('0') ? 'state=1' : 'state=0')),
  );
  await failing(browser, `${back}x`.replace(/(state=[\w-]+)(.*)x$/, '$1x$2'));
  await failing(browser, back.replace(/code=[^&]+/, 'code=another'));
  await failing(browser, back.replace(/iss=[^&]+/, `iss=${encodeURIComponent('http://127.0.0.1:1')}`));

  const kept = new Map(browser.cookies);
  assert.equal((await browser.open(back, { until: /\/$/ })).status, 303);
  assert.equal(await statusOf(browser), 200);
  await failing(openBrowser(), back);
  // Somebody who has copied the cookies of the login too.
  const thief = openBrowser();
  for (const [name, value] of kept) thief.cookies.set(name, value);
  await failing(thief, back);
});

test('a login that belongs to another login is refused by its nonce and its verifier', async () => {
  const one = openBrowser();
  const other = openBrowser();
  const [backOne, backOther] = [await comeBack(one), await comeBack(other)];
  // The code of the other login under the state of this one, as an attacker would plant it.
  const code = new URL(backOther).searchParams.get('code') ?? '';
  const planted = new URL(backOne);
  planted.searchParams.set('code', code);
  const page = await one.open(planted.href, asProgram);
  assert.deepEqual([page.status, codeOf(page)], [400, 'SYS_AUTH_LOGIN_FAILED']);
});

test('a refusal of the provider is shown as a page with a way back', async () => {
  login.people.refuse.next = true;
  try {
    const page = await openBrowser().open(`${url}/auth/login`);
    assert.equal(page.status, 403);
    assert.match(page.text, /<h1>Login failed<\/h1>.*access_denied.*href="\/auth\/login\?return_to=%2F"/s);
    assert.match(String(page.headers['content-security-policy']), /^default-src 'none'/);
  } finally {
    login.people.refuse.next = false;
  }
});

test('only a path of this server may follow the login', async () => {
  for (const wrong of [
    'https://evil.example.com',
    '//evil.example.com',
    '/\\evil.example.com',
    'inbox',
    '/auth/login',
  ]) {
    const address = `${url}/auth/login?return_to=${encodeURIComponent(wrong)}`;
    const page = await openBrowser().open(address, asProgram);
    assert.deepEqual([page.status, codeOf(page)], [400, 'SYS_AUTH_RETURN_PATH'], wrong);
  }
});

test('a browser may begin five logins at a time, in the cookies of five', async () => {
  const browser = openBrowser();
  const backs: string[] = [];
  for (let count = 0; count < 6; count += 1) backs.push(await comeBack(browser));
  const names = [...browser.cookies.keys()].filter((name) => name.startsWith('redrive-login-'));
  assert.equal(names.length, 5);
  // The first one was the oldest.
  assert.equal((await browser.open(backs[0] ?? '', asProgram)).status, 400);
  for (const back of [backs[5], backs[3]]) {
    const page = await browser.open(back ?? '', { until: /\/$/ });
    assert.equal(page.status, 303, page.text);
  }
});

test('a login makes a new session, and ends the one before', async () => {
  const browser = await login.login();
  const before = browser.cookies.get('redrive') ?? '';
  await browser.open(`${url}/auth/login`);
  assert.notEqual(browser.cookies.get('redrive'), before);
  assert.equal(await statusOf(browser), 200);
  browser.cookies.set('redrive', before);
  assert.equal(await statusOf(browser), 401);
  // A reference that somebody has planted is not taken over.
  const planted = openBrowser();
  planted.cookies.set('redrive', 'A'.repeat(43));
  await planted.open(`${url}/auth/login`);
  assert.notEqual(planted.cookies.get('redrive'), 'A'.repeat(43));
});

test('the cookie of a session changes nothing for other sites, and is ignored beside a token', async () => {
  const browser = await login.login();
  const post = (headers: Readonly<Record<string, string>>) =>
    browser.fetch(`${url}/api/v1/jobs/${someId}/cancel`, {
      method: 'POST',
      body: '{"reason":"test"}',
      headers,
    });
  for (const headers of [
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { 'x-redrive-console': '0' },
    { 'sec-fetch-site': 'none', origin: 'https://evil.example.com' },
  ])
    assert.deepEqual(
      [(await post(headers)).status, codeOf(await post(headers))],
      [403, 'SYS_JOBS_FORBIDDEN'],
    );
  assert.equal((await post({})).status, 404, 'there is no such job');
  assert.equal((await post({ host: 'rebound.example.com' })).status, 421);
  const read = await browser.fetch(`${url}/api/v1/me`, { headers: { 'sec-fetch-site': 'same-site' } });
  assert.equal(read.status, 403);
  const out = await browser.fetch(`${url}/auth/logout`, {
    method: 'POST',
    headers: { 'sec-fetch-site': 'cross-site' },
  });
  assert.equal(out.status, 403);
  const both = await browser.fetch(`${url}/api/v1/me`, { headers: { authorization: 'Bearer nonsense' } });
  assert.deepEqual([both.status, codeOf(both)], [401, 'SYS_AUTH_TOKEN_INVALID']);
  assert.equal(await statusOf(browser), 200);
});

test('a session ends when it is idle, and at its end', async () => {
  const { db } = login.system;
  const ended = async (what: 'last_seen_at' | 'expires_at') => {
    const browser = await login.login();
    assert.equal(await statusOf(browser), 200);
    await (what === 'expires_at'
      ? db.query(sql`UPDATE access.sessions SET expires_at = clock_timestamp()`)
      : db.query(sql`UPDATE access.sessions SET last_seen_at = last_seen_at - interval '31 minutes'`));
    const deadline = performance.now() + 3000;
    while ((await statusOf(browser)) !== 401) assert.ok(performance.now() < deadline, what);
  };
  await ended('last_seen_at');
  await ended('expires_at');
  // The next login deletes what has ended.
  await login.login();
  const [row] = await db.query<{ count: number }>(sql`SELECT count(*)::int AS count FROM access.sessions`);
  assert.equal(row?.count, 1);
});

test('requests keep a session alive, at most one note a minute', async () => {
  const { db } = login.system;
  const browser = await login.login();
  await db.query(sql`UPDATE access.sessions SET last_seen_at = last_seen_at - interval '20 minutes'`);
  const seen = async () => {
    const [row] = await db.query<{ ago: number }>(sql`
      SELECT extract(epoch FROM clock_timestamp() - max(last_seen_at))::float8 AS ago FROM access.sessions`);
    return row?.ago ?? 0;
  };
  assert.equal(await statusOf(browser), 200);
  const deadline = performance.now() + 3000;
  while ((await seen()) > 60) assert.ok(performance.now() < deadline);
  await db.query(sql`UPDATE access.sessions SET last_seen_at = last_seen_at - interval '2 minutes'`);
  assert.equal(await statusOf(browser), 200);
  assert.ok((await seen()) > 110, 'noted again within a minute');
});

test('roles are those of the last login, and what they allow is checked at each request', async () => {
  const browser = await login.login();
  const replayRoles = async () => ((await browser.fetch(`${url}/api/v1/me`)).json as Me).roles;
  login.people.person.roles = ['sys_auditor'];
  try {
    assert.deepEqual(await replayRoles(), ['sys_operator']);
    await browser.open(`${url}/auth/login`);
    assert.deepEqual(await replayRoles(), ['sys_auditor']);
  } finally {
    login.people.person.roles = ['sys_operator'];
  }
});

test('a logout on one replica ends the session on the others', async () => {
  const replica = await login.startReplica();
  try {
    const browser = await login.login();
    assert.equal(await statusOf(browser, replica.url), 200);
    assert.equal((await browser.fetch(`${replica.url}/auth/logout`, { method: 'POST' })).status, 200);
    const reference = browser.received.findLast((line) => /^redrive=[\w-]{43}/.test(line)) ?? '';
    browser.cookies.set('redrive', reference.slice('redrive='.length, 'redrive='.length + 43));
    const deadline = performance.now() + 3000;
    while ((await statusOf(browser)) !== 401) assert.ok(performance.now() < deadline, 'still accepted');
  } finally {
    await replica.stop();
  }
});

test('a key that seals may be replaced while logins are in progress', async () => {
  const file = join(login.secretsDir, 'session-keys');
  const before = openBrowser();
  const back = await comeBack(before);
  const next = 'the-next-key-of-the-tests-0123456789abc';
  const settled = () => new Promise((resolve) => setTimeout(resolve, 1100));
  try {
    await writeFile(file, `${next}\n${firstSessionKey}\n`);
    await settled();
    const after = openBrowser();
    const laterBack = await comeBack(after);
    assert.equal(await statusAfter(before, back), 303, 'sealed with the old key');
    const stale = openBrowser();
    const staleBack = await comeBack(stale);
    await writeFile(file, `${next}\n`);
    await settled();
    assert.equal(await statusAfter(after, laterBack), 303, 'sealed with the new key');
    assert.equal(await statusAfter(stale, staleBack), 303, 'sealed with the new key');
    // A login that nobody can open any more begins again.
    const lost = openBrowser();
    const lostBack = await comeBack(lost);
    await writeFile(file, `${firstSessionKey}\n`);
    await settled();
    assert.equal(await statusAfter(lost, lostBack), 400);
  } finally {
    await writeFile(file, `${firstSessionKey}\n`);
    await settled();
  }
});

test('new keys of the provider are accepted at once, and without it sessions go on', async () => {
  const browser = await login.login();
  await login.issuer.rotate();
  assert.equal(await statusOf(await login.login()), 200);
  await login.issuer.pause();
  try {
    assert.equal(await statusOf(browser), 200);
    const out = await browser.fetch(`${url}/auth/logout`, { method: 'POST' });
    assert.equal(out.status, 200, out.text);
  } finally {
    await login.issuer.resume();
  }
});

test('a provider that does not answer is no way in', async () => {
  const browser = openBrowser();
  const back = await comeBack(browser);
  await login.issuer.pause();
  try {
    const page = await browser.open(back, asProgram);
    assert.deepEqual([page.status, codeOf(page)], [503, 'SYS_AUTH_ISSUER_UNAVAILABLE']);
    assert.equal(page.headers['retry-after'], '2');
    assert.equal(await statusOf(browser), 401);
  } finally {
    await login.issuer.resume();
  }
});

test('failed logins are in the audit log, with a count and without what was sent', async () => {
  await login.system.stop();
  const rows = await login.system.db.query<{
    resource: string;
    reason: string;
    outcome: string;
    all: string;
  }>(sql`
    SELECT resource, reason, outcome, to_jsonb(e)::text AS "all" FROM audit.events e
    WHERE action = 'access:tokens:verify' ORDER BY seq`);
  const failed = rows.filter(({ resource }) => resource === 'http/GET /auth/callback');
  assert.ok(failed.some(({ reason }) => reason === 'SYS_AUTH_LOGIN_FAILED'));
  assert.ok(failed.some(({ reason }) => reason === 'SYS_AUTH_LOGIN_REFUSED'));
  assert.ok(failed.every(({ outcome, all }) => outcome === 'denied' && !all.includes('code=')));
});
