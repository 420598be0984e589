import assert from 'node:assert/strict';
import { chmod, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { after, before, test } from 'node:test';
import { runCli } from '../../src/cli/run-cli.ts';
import { openBrowser } from '../support/browser.ts';
import { startLoginSystem, type LoginSystem } from '../support/login-system.ts';

let login: LoginSystem;
let folder: string;
let file: string;
before(async () => {
  login = await startLoginSystem();
  folder = await mkdtemp(join(tmpdir(), 'redrive-home-'));
  file = join(folder, 'redrive', 'logins.json');
});
after(async () => {
  await login.drop();
  await rm(folder, { recursive: true });
});

/** Runs a command, and calls `onLine` for what it prints while it runs. */
async function run(args: readonly string[], more: NodeJS.ProcessEnv = {}, onLine?: (line: string) => void) {
  const written = { out: '', err: '' };
  const code = await runCli(args, {
    env: { XDG_CONFIG_HOME: folder, REDRIVE_URL: login.system.url, USER: 'hanako', ...more },
    stdin: new PassThrough(),
    stdout: {
      write(data) {
        written.out += String(data);
        onLine?.(String(data));
      },
    },
    stderr: { write: (data) => void (written.err += String(data)) },
  });
  return { code, ...written };
}

/** The user opens the address on another device, compares the code and agrees. */
async function agree(address: string): Promise<void> {
  const browser = openBrowser();
  const code = new URL(address).searchParams.get('user_code') ?? '';
  let page = await browser.open(address);
  while (page.text.includes('<form'))
    page = await browser.submit(page, page.text.includes('op.deviceInputForm') ? { user_code: code } : {});
  assert.match(page.text, /Sign-in Success/i);
}

async function logIn(more: NodeJS.ProcessEnv = {}) {
  let agreed: Promise<void> | undefined;
  const result = await run(['login'], more, (line) => {
    const [, address] = /^Open (\S+)/.exec(line) ?? [];
    if (address !== undefined) agreed = agree(address);
  });
  await agreed;
  return result;
}

type Stored = {
  servers: Record<string, { accessToken: string; refreshToken: string; expiresAtMs: number }>;
};
const readStored = async () => JSON.parse(await readFile(file, 'utf8')) as Stored;

test('a user logs in by a browser, commands use the login, and a logout ends it', async () => {
  const before = await run(['jobs', 'queues']);
  assert.equal(before.code, 1);
  assert.match(before.err, /Run `redrive login`/);

  const result = await logIn();
  assert.equal(result.code, 0, result.err);
  assert.match(result.out, /shows the code [A-Z-]+\nLogged in to http:\S+ as /);
  assert.equal((await stat(file)).mode & 0o777, 0o600);
  assert.equal((await stat(join(folder, 'redrive'))).mode & 0o077, 0);

  const me = await run(['whoami']);
  assert.equal(me.code, 0, me.err);
  assert.match(me.out, new RegExp(`subject +user:${login.issuer.url}\\|ada`));
  assert.equal((await run(['jobs', 'queues'])).code, 0);

  const { servers } = await readStored();
  const { refreshToken = '' } = Object.values(servers)[0] ?? {};
  const out = await run(['logout']);
  assert.equal(out.code, 0, out.err);
  assert.match(out.out, /^Logged out of /);
  assert.deepEqual((await readStored()).servers, {});
  const renewed = await fetch(`${login.issuer.url}/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'refresh_token',
      refresh_token: refreshToken,
      client_id: 'redrive-cli',
    }),
  });
  assert.equal(renewed.status, 400, 'the issuer was told');
  assert.equal((await run(['whoami'])).code, 1);
  assert.match((await run(['logout'])).err, /^not logged in to /);
});

test('an expired login is renewed once, also by commands at the same time', async () => {
  assert.equal((await logIn()).code, 0);
  const stored = await readStored();
  const [[url, before]] = Object.entries(stored.servers) as [[string, Stored['servers'][string]]];
  await writeFile(file, JSON.stringify({ ...stored, servers: { [url]: { ...before, expiresAtMs: 0 } } }));
  const results = await Promise.all([1, 2, 3].map(() => run(['whoami'])));
  assert.deepEqual(
    results.map(({ code, err }) => [code, err]),
    [1, 2, 3].map(() => [0, '']),
  );
  const after = (await readStored()).servers[url];
  assert.notEqual(after?.accessToken, before.accessToken);
  assert.ok((after?.expiresAtMs ?? 0) > Date.now());
});

test('a login that the issuer renews no more says what to do', async () => {
  const stored = await readStored();
  const [[url, before]] = Object.entries(stored.servers) as [[string, Stored['servers'][string]]];
  const broken = { ...before, expiresAtMs: 0, refreshToken: 'unknown' };
  await writeFile(file, JSON.stringify({ ...stored, servers: { [url]: broken } }));
  const refused = await run(['whoami']);
  assert.equal(refused.code, 1);
  assert.match(refused.err, /has expired: run `redrive login`/);
});

test('a token goes only to the server for which it was given, and a file for others is not used', async () => {
  const other = await run(['whoami', '--url', login.system.url.replace('127.0.0.1', 'localhost')]);
  assert.equal(other.code, 1);
  assert.match(other.err, /SYS_AUTH_MISSING_TOKEN/);
  await chmod(file, 0o644);
  const open = await run(['whoami']);
  assert.equal(open.code, 2);
  assert.match(open.err, /can be read by others/);
  await chmod(file, 0o600);
  await writeFile(file, 'half');
  assert.match((await run(['whoami'])).err, /is damaged: delete it/);
  await rm(file);
});

test('a token in the environment counts instead of a login', async () => {
  const token = await login.issuer.sign({ sub: 'script', roles: ['sys_auditor'] });
  assert.match((await run(['whoami'], { REDRIVE_TOKEN: token })).out, /\|script/);
  const refused = await run(['login'], { REDRIVE_TOKEN: token });
  assert.match(refused.err, /would be used instead of the login/);
});
