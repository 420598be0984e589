import assert from 'node:assert/strict';
import { copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openBrowser } from '../support/browser.ts';
import { eventually } from '../support/eventually.ts';
import { firstSessionKey, startLoginSystem } from '../support/login-system.ts';

const next = 'the-next-key-of-the-tests-0123456789abc';
/** The files of two machines change at different times. */
const apartMs = 600;
/** After this long every process has read a changed file. */
const readWithinMs = 1100;

test('keys of two replicas are rotated as documented, and no login that is in progress fails', async (t) => {
  const login = await startLoginSystem();
  t.after(() => login.drop());
  const secrets = await mkdtemp(join(tmpdir(), 'redrive-login-'));
  t.after(() => rm(secrets, { recursive: true }));
  for (const name of ['session-keys', 'oidc-client-secret'])
    await copyFile(join(login.secretsDir, name), join(secrets, name));
  const replica = await login.startReplica(secrets);
  t.after(() => replica.stop());
  const stopping = new AbortController();
  const failures: string[] = [];
  let done = 0;
  /** Begins at one replica, and comes back to the other one, as behind a load balancer. */
  const logIn = async (from: string, to: string): Promise<void> => {
    while (!stopping.signal.aborted) {
      const browser = openBrowser();
      const { url } = await browser.open(`${from}/auth/login`, { until: /\/auth\/callback\?/ });
      const back = new URL(url);
      const page = await browser.open(`${to}${back.pathname}${back.search}`, { until: /\/$/ });
      if (page.status !== 303) failures.push(`${page.status} ${page.text}`);
      done += 1;
    }
  };
  const [one, other] = [login.system.url, replica.url];
  const load = [logIn(one, other), logIn(other, one)];
  const rotateTo = async (...keys: readonly string[]): Promise<void> => {
    const text = keys.map((key) => `${key}\n`).join('');
    await writeFile(join(login.secretsDir, 'session-keys'), text);
    await sleep(apartMs);
    await writeFile(join(secrets, 'session-keys'), text);
    const before = done;
    await sleep(readWithinMs);
    await eventually(() => assert.ok(done >= before + 4));
  };
  await rotateTo(firstSessionKey, next);
  await rotateTo(next, firstSessionKey);
  // Ten minutes later.
  await rotateTo(next);
  stopping.abort();
  await Promise.all(load);
  assert.deepEqual(failures, []);
  assert.ok(done > 12, `${done} logins`);
});
