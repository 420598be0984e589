import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { assertAccessible } from '../../support/console/assert-accessible.ts';
import { startConsoleSystem, type ConsoleSystem } from '../../support/console/console-system.ts';
import { describeConsole } from '../../support/console/console-tests.ts';
import { openConsole } from '../../support/console/open-console.ts';

const themes = ['light', 'dark'] as const;
const areas = ['Inbox', 'Dead letters', 'Outbox', 'Jobs', 'Sagas', 'Activity', 'System'];
const phone = { width: 390, height: 844 };

describeConsole('the frame of the console', (browser) => {
  let system: ConsoleSystem;
  before(async () => {
    system = await startConsoleSystem();
  });
  after(() => system.drop());

  test('every area is reached from the rail, has a title, and puts the focus on its heading', async (t) => {
    const page = await openConsole(t, { browser, system, path: '/system' });
    const rail = page.getByRole('navigation', { name: 'Main' });
    for (const area of areas) {
      await rail.getByRole('link', { name: area }).click();
      await page.getByRole('heading', { level: 1 }).and(page.locator(':focus')).waitFor();
      const title = await page.title();
      assert.ok(title.includes(area) && title.includes('Redrive'), title);
    }
  });

  test('the page of the API shows its operations within its own policy', async (t) => {
    // Its script looks whether it may compile code, and goes without.
    const expectedErrors = [/^script-src eval /, /favicon/];
    const page = await openConsole(t, { browser, system, path: '/docs/', expectedErrors });
    await page.getByText('Retry a message').first().waitFor();
  });

  test('tabs are links, and the breadcrumb leads back', async (t) => {
    const noSuchRedrive = [/404 .*\/api\/v1\/dlq\/redrives\//];
    const page = await openConsole(t, { browser, system, path: '/dlq', expectedErrors: noSuchRedrive });
    assert.match(page.url(), /\/dlq\/groups$/);
    const tabs = page.getByRole('navigation', { name: 'Dead letters' });
    await tabs.getByRole('link', { name: 'Redrives' }).click();
    await page.getByRole('heading', { name: 'Redrives', level: 1 }).waitFor();
    assert.equal(await tabs.getByRole('link', { name: 'Redrives' }).getAttribute('aria-current'), 'page');
    await page.goto(`${system.url}/dlq/redrives/0193f0c8-0000-7000-8000-000000000000`);
    const breadcrumb = page.getByRole('navigation', { name: 'Breadcrumb' });
    await breadcrumb.getByRole('link', { name: 'Redrives' }).click();
    await page.waitForURL(/\/dlq\/redrives$/);
  });

  test('an unknown page says so inside the frame', async (t) => {
    const page = await openConsole(t, { browser, system, path: '/dlq/nowhere/at/all' });
    await page.getByRole('heading', { name: 'There is no such page' }).waitFor();
    await page.getByRole('main').getByRole('link', { name: 'Go to the inbox' }).click();
    await page.waitForURL(/\/inbox$/);
  });

  test('settings hold at once, in other tabs, and after a reload', async (t) => {
    const page = await openConsole(t, { browser, system });
    const other = await openConsole(t, { browser, system, context: page.context(), path: '/jobs' });
    await page.getByRole('button', { name: 'Settings of local' }).click();
    await page.getByRole('radio', { name: 'Dark' }).click();
    await page.getByRole('radio', { name: '日本語' }).click();
    await page.getByRole('heading', { name: '受信箱', level: 1 }).waitFor();
    await other.getByRole('heading', { name: 'ジョブ', level: 1 }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'local の設定' }).and(page.locator(':focus')).waitFor();
    await page.reload();
    await page.getByRole('heading', { name: '受信箱', level: 1 }).waitFor();
    assert.equal(await page.locator('html').getAttribute('lang'), 'ja');
    assert.equal(await page.locator('html').getAttribute('data-theme'), 'dark');
  });

  test('the rail folds to icons, and their names stay', async (t) => {
    const page = await openConsole(t, { browser, system });
    const rail = page.getByRole('navigation', { name: 'Main' });
    await rail.getByRole('button', { name: 'Collapse' }).click();
    const box = await page.getByRole('complementary').boundingBox();
    assert.equal(box?.width, 48);
    await rail.getByRole('link', { name: 'Sagas' }).click();
    await page.waitForURL(/\/sagas$/);
    await rail.getByRole('button', { name: 'Expand' }).click();
  });

  test('on a small screen the rail is a drawer, and nothing is wider than the screen', async (t) => {
    const page = await openConsole(t, { browser, system, viewport: phone });
    await page.getByRole('button', { name: 'Open the navigation' }).click();
    await page.getByRole('dialog', { name: 'Main' }).getByRole('link', { name: 'Outbox' }).click();
    await page.getByRole('heading', { name: 'Orders', level: 1 }).waitFor();
    assert.equal(await page.getByRole('dialog').count(), 0);
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), phone.width);
  });

  for (const theme of themes)
    for (const language of ['en', 'ja'] as const)
      test(`is accessible: ${theme}, ${language}`, async (t) => {
        const page = await openConsole(t, { browser, system, path: '/dlq/groups', theme, language });
        await assertAccessible(page);
        await page.getByRole('banner').getByRole('button').last().click();
        await assertAccessible(page);
      });
});
