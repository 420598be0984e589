import assert from 'node:assert/strict';
import { test } from 'node:test';
import { openBrowser, type Browser } from '../support/browser.ts';
import { startLoginSystem } from '../support/login-system.ts';

/** A browser talks TLS to a proxy, and the proxy plain HTTP to the server. */
const publicUrl = 'https://redrive.example.com';

/** What a browser at the public address keeps. */
function keepReceived({ cookies, received }: Browser): void {
  for (const line of received) {
    const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
    cookies.set(name, value);
  }
}

test('behind TLS every cookie is bound to the host, sent over TLS only, and read by no script', async (t) => {
  const login = await startLoginSystem({ publicUrl });
  t.after(() => login.drop());
  const { url } = login.system;
  const browser = openBrowser();
  const back = new URL((await browser.open(`${url}/auth/login`, { until: /\/auth\/callback\?/ })).url);
  assert.equal(back.origin, publicUrl);
  keepReceived(browser);
  const page = await browser.open(`${url}${back.pathname}${back.search}`, { until: /\/$/ });
  assert.equal(page.status, 303, page.text);

  const ours = browser.received.filter((line) => line.includes('redrive'));
  const named = (name: RegExp) => ours.filter((line) => name.test(line)).length;
  assert.ok(named(/^__Host-redrive-login-\d=[^;]+;/) === 1 && named(/^__Host-redrive=[\w-]{43};/) === 1);
  for (const line of ours) {
    for (const part of [/^__Host-redrive/, /; Path=\/(;|$)/, /; HttpOnly/, /; Secure/, /; SameSite=Lax/])
      assert.match(line, part);
    assert.doesNotMatch(line, /domain=/i);
  }

  keepReceived(browser);
  const me = async (): Promise<number> => (await browser.fetch(`${url}/api/v1/me`)).status;
  assert.equal(await me(), 200);
  // A page of a subdomain, or of plain HTTP, can set a cookie of the other name only.
  const reference = browser.cookies.get('__Host-redrive') ?? '';
  browser.cookies.clear();
  browser.cookies.set('redrive', reference);
  assert.equal(await me(), 401);
});
