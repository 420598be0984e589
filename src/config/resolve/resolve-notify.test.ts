import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { inspect } from 'node:util';

import { stringify } from 'yaml';

import type { Config } from '../config.ts';
import { folderOf, load, loadYaml, problemOf, problemsOf } from '../../../tests/support/test-config.ts';

const loadNotify = (notify: unknown, more: object = {}): Config => loadYaml(stringify({ notify, ...more }));

const url = 'https://hooks.example.com/redrive';
const slackUrl = 'https://hooks.slack.example/services/T0/B0/hunter2hunter2';
const secret = 'hunter2hunter2';
const webhook = { type: 'webhook', url, secret };
const email = { type: 'email', host: 'mail.example.com', from: 'redrive@example.com', to: 'ops@example.com' };

test('without notifiers nobody is told', () => {
  assert.deepEqual(load({}).notify, []);
});

test('every kind of notifier has its defaults', () => {
  const [hook, slack, mail] = loadNotify([webhook, { type: 'slack', url: slackUrl }, email]).notify;
  assert.ok(hook?.type === 'webhook' && slack?.type === 'slack' && mail?.type === 'email');
  assert.deepEqual(
    [hook.url, hook.secret(), hook.cooldownMs, hook.timeoutMs, hook.slices],
    [url, secret, 300_000, 5000, ['dlq', 'outbox', 'jobs', 'saga']],
  );
  assert.deepEqual([slack.url(), slack.cooldownMs], [slackUrl, 300_000]);
  assert.deepEqual(
    [mail.host, mail.port, mail.security, mail.user, mail.password, mail.to],
    ['mail.example.com', 587, 'starttls', undefined, undefined, ['ops@example.com']],
  );
});

const namesOf = (...notify: readonly object[]): readonly string[] =>
  loadNotify(notify).notify.map(({ name }) => name);

test('a notifier is known by its name, or else by its type and address, wherever it stands in the list', () => {
  const slack = { type: 'slack', url: slackUrl };
  const names = namesOf(webhook, slack, email);
  assert.deepEqual(names, ['webhook_27c5c6ed', 'slack_53701915', 'email_af3c8254']);
  assert.deepEqual(namesOf(email, slack, webhook), names.toReversed());
  assert.deepEqual(namesOf({ ...webhook, name: 'on-call' }, webhook), ['on-call', names[0]]);
});

test('what is no address may change, and the notifier stays who it is', () => {
  const changes = { cooldown: '1h', slices: 'jobs', timeout_ms: 1 };
  assert.deepEqual(namesOf({ ...webhook, ...changes, secret: 'another secret' }), namesOf(webhook));
  assert.deepEqual(namesOf({ ...email, ...changes, host: 'other.example.com' }), namesOf(email));
  const two = ['a@example.com', 'b@example.com'];
  assert.deepEqual(namesOf({ ...email, to: two.toReversed() }), namesOf({ ...email, to: two }));
  const folder = folderOf({ slack: slackUrl });
  const slack = { type: 'slack', url: { file: join(folder, 'slack') } };
  const names = namesOf(slack);
  writeFileSync(join(folder, 'slack'), `${slackUrl}-new`);
  assert.deepEqual(namesOf(slack), names, 'an address in a file is known by the file');
});

test('two notifiers of one name, or of one address and no names, are refused', () => {
  const problemWith = (last: object) =>
    problemOf(() => loadNotify([{ ...webhook, name: 'ops' }, webhook, last]));
  const named = problemWith({ ...email, name: 'ops' });
  assert.equal(named.path, 'notify[2].name');
  assert.match(named.reason, /^ops is also the name of notify\[0\]/);
  const unnamed = problemWith({ ...webhook, cooldown: '1h' });
  assert.equal(unnamed.path, 'notify[2].name');
  assert.match(unnamed.reason, /^webhook_[0-9a-f]{8} is also the name of notify\[1\]/);
});

test('a variable holds the list as JSON', () => {
  const notify = JSON.stringify([{ ...webhook, cooldown: '30s', slices: 'jobs' }]);
  const [hook] = load({ env: { NOTIFY: notify } }).notify;
  assert.deepEqual([hook?.cooldownMs, hook?.slices], [30_000, ['jobs']]);
});

test('secrets come from files too, and a new one counts within a second', () => {
  const folder = folderOf({ signing: `${secret}\n`, slack: `${slackUrl}\n`, mail: 'pässwort\n' });
  const at = (name: string): object => ({ file: join(folder, name) });
  const [hook, slack, mail] = loadNotify([
    { ...webhook, secret: at('signing') },
    { type: 'slack', url: at('slack') },
    { ...email, user: 'redrive', password: at('mail') },
  ]).notify;
  assert.ok(hook?.type === 'webhook' && slack?.type === 'slack' && mail?.type === 'email');
  assert.deepEqual([hook.secret(), slack.url(), mail.password?.()], [secret, slackUrl, 'pässwort']);
  writeFileSync(join(folder, 'signing'), 'x');
  assert.equal(hook.secret(), secret, 'a file that holds no secret any more leaves the one there was');
});

test('no secret shows up when the configuration is logged', () => {
  const config = loadNotify([
    webhook,
    { type: 'slack', url: slackUrl },
    { ...email, user: 'a', password: secret },
  ]);
  const shown = `${inspect(config, { depth: 9 })}${JSON.stringify(config)}`;
  assert.doesNotMatch(shown, /hunter2/);
});

const wrong: readonly (readonly [notifier: unknown, at: string, reason: RegExp])[] = [
  ['webhook', '', /must be a map of keys, not text/],
  [{}, '.type', /is missing/],
  [{ type: 'webhok', url, secret }, '.type', /one of webhook, slack, email/],
  [{ type: 'webhook', url }, '.secret', /is missing/],
  [{ type: 'webhook', secret }, '.url', /is missing/],
  [{ ...webhook, url: 'hooks.example.com' }, '.url', /http:\/\/ or https:\/\//],
  [{ ...webhook, url: 'https://me:hunter2@a/b' }, '.url', /must not hold a user or a password/],
  [{ ...webhook, secret: 'short' }, '.secret', /at least 8 characters/],
  [{ ...webhook, secret: { file: '/nowhere' } }, '.secret.file', /cannot be read: ENOENT/],
  ...['', '1st', 'Ops', '_ops', 'a b', 'a'.repeat(41), 7].map(
    (name) => [{ ...webhook, name }, '.name', /1 to 40 characters of a-z/] as const,
  ),
  [{ ...webhook, coldown: '5m' }, '.coldown', /unknown key for type webhook/],
  [{ ...webhook, cooldown: '0s' }, '.cooldown', /from 1s to 7d/],
  [{ ...webhook, cooldown: 5 }, '.cooldown', /unit is missing/],
  [{ ...webhook, slices: [] }, '.slices', /1 to/],
  [{ ...webhook, slices: ['job'] }, '.slices[0]', /one of dlq, outbox, jobs, saga/],
  [{ ...webhook, timeout_ms: 600_000 }, '.timeout_ms', /less than outbox.stuck_threshold_min/],
  [{ type: 'slack', url: 'hooks' }, '.url', /must be an http:\/\/ or https:\/\/ URL/],
  [{ type: 'slack', url: 'https://a:b@c/d' }, '.url', /without a user/],
  [{ ...email, to: [] }, '.to', /1 to/],
  [{ ...email, from: 'nobody' }, '.from', /a mail address/],
  [{ ...email, user: 'a' }, '.password', /is missing, but notify\[1\]\.user is set/],
  [{ ...email, password: secret }, '.user', /is missing, but notify\[1\]\.password is set/],
];

for (const [notifier, at, reason] of wrong)
  test(`wrong: ${inspect(notifier, { breakLength: Infinity })}`, () => {
    const problem = problemOf(() => loadNotify([{ ...webhook, name: 'first' }, notifier]));
    assert.equal(problem.path, `notify[1]${at}`);
    assert.match(problem.reason, reason);
    assert.doesNotMatch(problem.reason, /hunter2/);
  });

test('a list of more than twenty, or no list, is refused', () => {
  assert.match(problemOf(() => loadNotify(Array.from({ length: 21 }, () => webhook))).reason, /at most 20/);
  assert.match(problemOf(() => loadNotify(webhook)).reason, /must be a list, not a map/);
});

test('what is wrong with several notifiers is told at once', () => {
  const problems = problemsOf(() =>
    loadNotify([
      { ...webhook, secret: 'a' },
      { type: 'slack', url: 'b' },
    ]),
  );
  assert.deepEqual(
    problems.map(({ path }) => path),
    ['notify[0].secret', 'notify[1].url'],
  );
});

test('a password in the clear is warned about', () => {
  const { warnings } = loadNotify([{ ...email, user: 'a', password: secret, security: 'none' }]);
  assert.match(warnings.join('\n'), /notify\[0\]\.password is sent in the clear/);
});

test('the address for links has neither credentials nor a query', () => {
  assert.equal(
    loadNotify([], { server: { public_url: 'https://redrive.example.com' } }).server.publicUrl,
    'https://redrive.example.com',
  );
  for (const wrongUrl of ['https://a/?b', 'https://u:p@a/', 'redrive.example.com'])
    assert.equal(
      problemOf(() => loadNotify([], { server: { public_url: wrongUrl } })).path,
      'server.public_url',
    );
});
