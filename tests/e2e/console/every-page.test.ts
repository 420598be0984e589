import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { assertAccessible } from '../../support/console/assert-accessible.ts';
import { describeConsole } from '../../support/console/console-tests.ts';
import { startEveryPage, type EveryPage } from '../../support/console/every-page.ts';
import { openConsole } from '../../support/console/open-console.ts';

/** What holds for every page, with hostile texts that are far too long in each of them. */
/** It takes more than a minute, and each page has tests of its own: `EVERY_PAGE=1 npm test -- …`. */
const isAsked = process.env['EVERY_PAGE'] === '1';
if (!isAsked) test('every page, below a path', { skip: 'set EVERY_PAGE=1' });

(isAsked ? describeConsole : () => {})('every page, below a path', (browser) => {
  let all: EveryPage;
  before(async () => {
    all = await startEveryPage();
  });
  after(() => all.drop());

  const open = (t: Parameters<typeof openConsole>[0], path: string, more: object = {}): Promise<Page> => {
    const system = { url: all.proxy.url, tokenOf: all.system.tokenOf };
    return openConsole(t, { browser, system, path, ...more });
  };

  const go = async (page: Page, path: string): Promise<void> => {
    await page.goto(all.proxy.url + path);
    await settled(page);
  };

  test('stays below it, shows what is hostile as text, and nothing runs out of a page of 320 px', async (t) => {
    const noSuchKey = [/404 .*\/outbox\/ledger\//];
    const viewport = { width: 320, height: 640 };
    const page = await open(t, '/dlq/groups', { viewport, expectedErrors: noSuchKey });
    const wrong: string[] = [];
    for (const [name, path] of Object.entries(all.paths)) {
      await go(page, path);
      const tell = (what: string): number => wrong.push(`${name}: ${what}`);
      if ((await page.title()) === 'owned') tell('a script ran');
      if ((await page.locator('img[src="x"], main script').count()) > 0) tell('elements of a text');
      if ((await page.locator('a[href^="/"]:not([href^="/ops/redrive/"])').count()) > 0)
        tell('links outside');
      (await page.evaluate<string[]>(findOverflow)).forEach(tell);
      await page.evaluate(widen);
      (await page.evaluate<string[]>(findOverflow)).forEach((what) => tell(`spaced, ${what}`));
    }
    assert.deepEqual(wrong, []);
    assert.deepEqual(all.proxy.outside, []);
  });

  test('is live below it, and its links are copied with it', async (t) => {
    const page = await open(t, '/dlq/messages');
    await page.getByRole('button', { name: /^Live/ }).waitFor();
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.locator('[data-row-link]').first().focus();
    await page.keyboard.press('Shift+Y');
    const link = await page.evaluate<string>('navigator.clipboard.readText()');
    assert.ok(link.startsWith(`${all.proxy.url}/dlq/messages/`), link);
    await page.goto(link);
    await page.getByRole('heading', { name: /^Message / }).waitFor();
    assert.deepEqual(all.proxy.outside, []);
  });

  test('an error is said, and is never an empty list', async (t) => {
    const page = await open(t, '/dlq/groups', { expectedErrors: [/500/] });
    const failure = { status: 500, json: { error: { code: 'SYS_BROKEN', message: 'it is broken' } } };
    await page.route(/\/api\/v1\/(?!me$|events|ping)/, (route) => route.fulfill(failure));
    for (const [name, path] of Object.entries(all.paths)) {
      // A form, and the tabs of a message that was not loaded.
      if (['plan', 'payload', 'headers', 'history'].includes(name)) continue;
      await go(page, path);
      const said = page.getByRole('main').getByRole('alert').filter({ hasText: 'SYS_BROKEN' });
      assert.ok((await said.count()) > 0, `${name} does not say what failed`);
      assert.equal(await page.locator('main [data-state="empty"]').count(), 0, `${name} looks empty`);
    }
    await assertAccessible(page);
  });

  test('the view is the address: back, forward, reload and another tab show the same', async (t) => {
    const page = await open(t, '/dlq/messages?q=status:PENDING');
    await page.locator('[data-row-link]').nth(3).focus();
    await page.keyboard.press(' ');
    await page.waitForURL(/peek=/);
    const id = await page.locator('[data-peeked]').getAttribute('data-row-id');
    const view = page.url();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: /^Message / }).waitFor();
    await page.keyboard.press('2');
    await page.waitForURL(/tab=payload/);
    const detail = page.url();
    await page.reload();
    await page.locator('.cm-content').waitFor();
    assert.equal(page.url(), detail);
    while (page.url() !== view) await page.goBack();
    const peeked = page.locator(`tr[data-peeked][data-row-id="${id}"]`);
    await peeked.waitFor();
    await page.goForward();
    await page.getByRole('heading', { name: /^Message / }).waitFor();
    const other = await open(t, view.slice(all.proxy.url.length), { context: page.context() });
    await other.locator(`tr[data-peeked][data-row-id="${id}"]`).waitFor();
    await other.getByRole('button', { name: 'Remove status:PENDING' }).waitFor();
  });

  test('over plain HTTP, without a clipboard and locks of the browser, links are copied and lists are live', async (t) => {
    const url = all.proxy.url.replace('127.0.0.1', '0.0.0.0');
    const system = { url, tokenOf: all.system.tokenOf };
    const page = await openConsole(t, {
      browser,
      system,
      path: '/dlq/messages',
      expectedErrors: [/Cross-Origin-Opener-Policy/],
    });
    assert.equal(await page.evaluate('isSecureContext'), false);
    await page.getByRole('button', { name: /^Live/ }).waitFor();
    const row = page.locator('[data-row-link]').first();
    await row.focus();
    await page.keyboard.press('Shift+Y');
    await row.and(page.locator(':focus')).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.press('Control+V');
    const pasted = await page.getByRole('combobox', { name: 'Filter' }).inputValue();
    assert.ok(pasted.startsWith(`${url}/dlq/messages/`), pasted);
  });

  test('is printed whole, without what is only for the screen', async (t) => {
    const page = await open(t, all.paths['messages'] ?? '');
    await page.locator('[data-row-link]').first().waitFor();
    await page.emulateMedia({ media: 'print' });
    assert.equal(await page.getByRole('navigation', { name: 'Main' }).isVisible(), false);
    for (const name of ['messages', 'payload', 'jobs', 'system']) {
      await go(page, all.paths[name] ?? '');
      assert.deepEqual(await page.evaluate<string[]>(findClipped), [], name);
    }
  });

  for (const [theme, language] of [
    ['light', 'ja'],
    ['dark', 'en'],
  ] as const)
    test(`is accessible with texts that are too long: ${theme}, ${language}`, async (t) => {
      const page = await open(t, '/dlq/groups', { theme, language });
      for (const name of [
        'groups',
        'peek',
        'payload',
        'edit',
        'redrive',
        'orders',
        'order',
        'job',
        'queues',
      ]) {
        await go(page, all.paths[name] ?? '');
        await assertAccessible(page);
      }
      await go(page, '/dlq/messages?q=topic:none');
      await assertAccessible(page);
    });
});

/** Nothing on the page is being loaded any more. */
async function settled(page: Page): Promise<void> {
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.locator('main [aria-busy="true"]').first().waitFor({ state: 'detached' });
}

/** What would be cut off on paper. */
const findClipped = `[...document.querySelectorAll('main, main div')]
  .filter((one) => one.scrollHeight > one.clientHeight + 1 && /auto|scroll|hidden/.test(getComputedStyle(one).overflowY) && one.clientHeight > 40)
  .map((one) => one.className)`;

/** WCAG 1.4.12, without a style element, which the policy refuses. */
const widen = `{
  const sheet = new CSSStyleSheet();
  sheet.replaceSync('* { line-height: 1.5 !important; letter-spacing: 0.12em !important; word-spacing: 0.16em !important }');
  document.adoptedStyleSheets = [sheet];
}`;

/** The page, or a control, that goes beyond the screen, and not within something that scrolls. */
const findOverflow = `(() => {
  const found = [];
  if (document.documentElement.scrollWidth > innerWidth) found.push('the page');
  const main = document.querySelector('main');
  if (main.scrollWidth > main.clientWidth) found.push('the content, ' + main.scrollWidth + ' px');
  return found;
})()`;
