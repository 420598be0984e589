import assert from 'node:assert/strict';
import { after, afterEach, before, test, type TestContext } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { BrowserContext, Page } from 'playwright-core';
import { createApiClient } from '../../support/api-client.ts';
import { sql } from '../../../src/platform/postgres/sql.ts';
import { assertAccessible } from '../../support/console/assert-accessible.ts';
import { untilBuilt } from '../../support/console/console-system.ts';
import { describeConsole } from '../../support/console/console-tests.ts';
import { openConsole } from '../../support/console/open-console.ts';
import { eventually } from '../../support/eventually.ts';
import { startLoginSystem, type LoginSystem } from '../../support/login-system.ts';

/** People log in at a real OpenID provider, in a real browser. */

/** What the browser says about answers that a login begins with, and that end a session. */
const expectedErrors = [
  /status of (401|403|503)/,
  /favicon/,
  /ERR_INCOMPLETE_CHUNKED_ENCODING/,
  /fonts\.googleapis/,
];
const place = '/jobs/queues?sort=name';

describeConsole('logins in the console', (browser) => {
  let login: LoginSystem;
  before(async () => {
    login = await startLoginSystem();
    await untilBuilt(login.system.api);
  });
  after(() => login.drop());
  afterEach(() => {
    Object.assign(login.people.person, { id: 'ada', name: 'ada.l', roles: ['sys_operator'] });
  });

  const open = (t: TestContext, path: string, context?: BrowserContext): Promise<Page> =>
    openConsole(t, {
      browser,
      system: { url: login.publicUrl, tokenOf: async () => null },
      path,
      expectedErrors,
      ...(context === undefined ? {} : { context }),
    });
  const me = (page: Page) => page.getByRole('button', { name: 'Settings of ada.l' });
  const alert = (page: Page) => page.getByRole('alert').filter({ hasText: 'Your session has ended.' });

  test('a stranger is sent to the provider, and comes back to the exact address', async (t) => {
    const page = await open(t, place);
    await me(page).waitFor();
    assert.equal(page.url(), login.publicUrl + place);
    const names = (await page.context().cookies()).map(({ name, httpOnly, sameSite }) => [
      name,
      httpOnly,
      sameSite,
    ]);
    assert.deepEqual(
      names.filter(([name]) => name === 'redrive'),
      [['redrive', true, 'Lax']],
    );
    assert.equal(
      await page
        .evaluate('JSON.stringify([localStorage, sessionStorage])')
        .then(String)
        .then((text) => /eyJ/.test(text)),
      false,
    );
  });

  test('a session that was idle too long says so once, and a login in a new tab continues the page', async (t) => {
    const page = await open(t, place);
    await me(page).waitFor();
    await login.system.db.query(
      sql`UPDATE access.sessions SET last_seen_at = last_seen_at - interval '31 minutes'`,
    );
    // A server looks a session up at most once a second.
    await delay(1100);
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Sagas' }).click();
    await page.waitForURL(/\/sagas/);
    await alert(page).waitFor();
    assert.equal(await alert(page).count(), 1);
    const where = page.url();
    const opened = page.context().waitForEvent('page');
    await page.getByRole('link', { name: 'Log in again in a new tab' }).click();
    const tab = await opened;
    await me(tab).waitFor();
    assert.equal(tab.url(), where);
    await tab.close();
    await page.bringToFront();
    await page.evaluate("dispatchEvent(new Event('focus'))");
    await alert(page).waitFor({ state: 'detached' });
    assert.equal(page.url(), where);
  });

  test('when an admin ends all sessions, an open page says so without being touched', async (t) => {
    const page = await open(t, place);
    await me(page).waitFor();
    const admin = createApiClient(login.system.url, {
      authorization: `Bearer ${await login.issuer.sign({ roles: ['sys_admin'] })}`,
    });
    const subject = `user:${login.issuer.url}|ada`;
    const ended = await admin.post('/api/v1/sessions/end', { subject, reason: 'a lost laptop' });
    assert.equal(ended.status, 200, ended.text);
    await alert(page).waitFor();
    assert.equal(page.url(), login.publicUrl + place);
  });

  test('a logout ends the session here and leads to the provider', async (t) => {
    const page = await open(t, place);
    await me(page).click();
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.waitForURL((url) => url.origin === login.issuer.url);
    const answer = await page.context().request.get(`${login.publicUrl}/api/v1/me`);
    assert.equal(answer.status(), 401);
  });

  test('without the provider a page says why, and its link leads to the address', async (t) => {
    const fresh = await startLoginSystem();
    await untilBuilt(fresh.system.api);
    await fresh.issuer.pause();
    const system = { url: fresh.publicUrl, tokenOf: async () => null };
    const page = await openConsole(t, { browser, system, path: place, expectedErrors });
    t.after(() => fresh.drop());
    await page.getByRole('heading', { name: 'Login failed' }).waitFor();
    await page.getByText(/provider|issuer/).waitFor();
    await fresh.issuer.resume();
    // The server asks a provider that was away again after a moment.
    await eventually(async () => {
      const again = page.getByRole('link', { name: 'Log in again' });
      if (await again.isVisible()) await again.click();
      await me(page).waitFor({ timeout: 2000 });
    });
    assert.equal(page.url(), fresh.publicUrl + place);
  });

  test('a refusal of the provider says so, and the next login leads to the address', async (t) => {
    login.people.refuse.next = true;
    const page = await open(t, place);
    await page.getByRole('heading', { name: 'Login failed' }).waitFor();
    login.people.refuse.next = false;
    await page.getByRole('link', { name: 'Log in again' }).click();
    await me(page).waitFor();
    assert.equal(page.url(), login.publicUrl + place);
  });

  test('somebody without any role is told so, with the subject to ask with', async (t) => {
    login.people.person.roles = [];
    const page = await open(t, place);
    await page.getByRole('heading', { name: 'You have no role here' }).waitFor();
    await page.getByText(`user:${login.issuer.url}|ada`).waitFor();
    await page.getByRole('button', { name: 'Log out' }).waitFor();
    await assertAccessible(page);
  });

  test('two tabs that begin a login at once both come back, each to its address', async (t) => {
    const context = await (await browser()).newContext();
    t.after(() => context.close());
    const [one, other] = await Promise.all([open(t, place, context), open(t, '/sagas', context)]);
    await Promise.all([me(one).waitFor(), me(other).waitFor()]);
    assert.equal(one.url(), login.publicUrl + place);
    assert.match(other.url(), /\/sagas/);
  });

  test('below a path of a proxy a login comes back to the same place', async (t) => {
    const proxied = await startLoginSystem({ path: '/ops/redrive', isProxied: true });
    await untilBuilt(proxied.system.api);
    const page = await openConsole(t, {
      browser,
      system: { url: proxied.publicUrl, tokenOf: async () => null },
      path: place,
      expectedErrors,
    });
    t.after(() => proxied.drop());
    await me(page).waitFor();
    assert.equal(page.url(), proxied.publicUrl + place);
  });
});
