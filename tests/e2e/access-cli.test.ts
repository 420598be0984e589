import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { after, before, test } from 'node:test';
import { runCli } from '../../src/cli/run-cli.ts';
import { sql } from '../../src/platform/postgres/sql.ts';
import { startLoginSystem, type LoginSystem } from '../support/login-system.ts';

/** API keys and sessions, from the command line. */
let login: LoginSystem;
let token: string;
before(async () => {
  login = await startLoginSystem();
  token = await login.issuer.sign({ roles: ['sys_admin'] });
});
after(() => login.drop());

async function run(args: readonly string[], env: NodeJS.ProcessEnv = { REDRIVE_TOKEN: token }) {
  const written = { out: '', err: '' };
  const code = await runCli(args, {
    env: { REDRIVE_URL: login.system.url, USER: 'hanako', ...env },
    stdin: new PassThrough(),
    stdout: { write: (data) => void (written.out += String(data)) },
    stderr: { write: (data) => void (written.err += String(data)) },
  });
  return { code, ...written };
}

test('a key is made, used, listed and revoked, and its secret is shown once', async () => {
  const made = await run([
    'api-keys',
    'create',
    'mail worker',
    '--role',
    'worker',
    '--queues',
    'mail, post-*',
  ]);
  assert.equal(made.code, 0, made.err);
  const key = made.out.trim();
  assert.match(key, /^rdk_[a-z0-9]{8}_[\w-]{43}$/i);
  assert.match(made.err, /role worker, only queues mail,post-\*/);
  assert.ok(!made.err.includes(key.split('_').slice(2).join('_')), 'the secret is in a note');
  const id = key.split('_')[1] ?? '';
  const used = await run(['whoami'], { REDRIVE_API_KEY: key });
  assert.match(used.out, /api_key/);

  const listed = await run(['api-keys', 'list']);
  assert.match(listed.out, new RegExp(`${id} +mail worker +worker +active`));
  assert.ok(!listed.out.includes(key));

  const revoked = await run(['api-keys', 'revoke', id]);
  assert.deepEqual([revoked.code, revoked.out], [0, `API key ${id} revoked\n`]);
  assert.match((await run(['api-keys', 'list'])).out, new RegExp(`${id} +mail worker +worker +revoked`));
  const refused = await run(['whoami'], { REDRIVE_API_KEY: key });
  assert.notEqual(refused.code, 0);
  assert.ok(!refused.err.includes(key), 'an error shows the key');
});

test('the JSON answer has the key once, and the list never', async () => {
  const made = await run([
    'api-keys',
    'create',
    'x',
    '--role',
    'sys_auditor',
    '--expires-in-days',
    '2',
    '--json',
  ]);
  const { id, key, scopes } = JSON.parse(made.out) as { id: string; key: string; scopes: null };
  assert.equal(scopes, null);
  const { out } = await run(['api-keys', 'list', '--json']);
  assert.ok(out.includes(`"${id}"`) && !out.includes(key));
});

test('wrong input is refused before or by the server', async () => {
  const unknown = await run(['api-keys', 'create', 'x', '--role', 'nobody']);
  assert.match(unknown.err, /there is no role nobody/);
  assert.equal((await run(['api-keys', 'create', 'x'])).code, 2);
  assert.equal((await run(['api-keys', 'create', 'x', '--role', 'worker', '--queues', 'a,,b'])).code, 2);
  assert.equal(
    (await run(['api-keys', 'create', 'x', '--role', 'worker', '--expires-in-days', '0'])).code,
    2,
  );
  assert.match((await run(['api-keys', 'revoke', 'aaaaaaaa'])).err, /API key not found: aaaaaaaa/);
});

test('a name that would write to the terminal is escaped', async () => {
  const made = await run(['api-keys', 'create', 'a\u001b[31mb', '--role', 'worker']);
  assert.equal(made.code, 0, made.err);
  assert.ok(!(await run(['api-keys', 'list'])).out.includes('\u001b[31m'));
});

test('sessions are listed, and those of a person are ended with the keys', async () => {
  assert.match((await run(['sessions', 'list'])).err, /nobody is logged in/);
  const browser = await login.login();
  const listed = await run(['sessions', 'list']);
  assert.equal(listed.code, 0, listed.err);
  const [row] = await login.system.db.query<{ subject: string }>(sql`SELECT subject FROM access.sessions`);
  const subject = `user:${row?.subject}`;
  assert.ok(listed.out.includes(subject), listed.out);
  assert.equal((await run(['sessions', 'end', subject])).code, 2);
  const ended = await run(['sessions', 'end', subject, '--reason', 'left the team']);
  assert.match(ended.out, /^1 session ended, \d API keys? revoked$/m);
  assert.equal((await browser.open(`${login.system.url}/api/v1/me`)).status, 401);
  assert.match((await run(['sessions', 'list'])).err, /nobody is logged in/);
});
