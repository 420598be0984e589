import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { assertAccessible } from '../../support/console/assert-accessible.ts';
import { startGuardedConsole, type ConsoleSystem } from '../../support/console/console-system.ts';
import { describeConsole } from '../../support/console/console-tests.ts';
import { openConsole, type OpenOptions } from '../../support/console/open-console.ts';
import { storeFailures } from '../../support/console/store-failures.ts';

describeConsole('saved views', (browser) => {
  let system: ConsoleSystem;
  before(async () => {
    system = await startGuardedConsole();
    await storeFailures(system.db, { name: 'shown', count: 3 });
  });
  after(() => system.drop());

  const open = (t: Parameters<typeof openConsole>[0], path: string, options: Partial<OpenOptions> = {}) =>
    openConsole(t, { browser, system, path, ...options });
  const menu = (page: Page): Locator => page.getByRole('dialog', { name: 'Saved views of this list' });
  const openMenu = async (page: Page): Promise<Locator> => {
    await page.getByRole('button', { name: 'Views', exact: true }).click();
    await menu(page).waitFor();
    return menu(page);
  };
  async function save(page: Page, name: string, isShared = false): Promise<Locator> {
    await page.getByRole('button', { name: 'Save view…' }).click();
    const dialog = page.getByRole('alertdialog', { name: 'Save this view' });
    await dialog.getByRole('textbox', { name: 'Name' }).fill(name);
    if (isShared) await dialog.getByRole('checkbox', { name: /Share/ }).check();
    await page.keyboard.press('Control+Enter');
    return dialog;
  }

  test('a filter is saved under a name, found in the menu, renamed and deleted; each can be undone', async (t) => {
    const page = await open(t, '/dlq/messages?q=status:PENDING+topic:orders.v1');
    const dialog = await save(page, 'waiting orders');
    await dialog.waitFor({ state: 'detached' });
    await page.goto(`${system.url}/dlq/messages`);
    assert.equal(await page.getByRole('button', { name: 'Save view…' }).count(), 0);
    const views = await openMenu(page);
    await assertAccessible(page);
    await views.getByRole('link', { name: /^waiting orders/ }).click();
    await page.waitForURL(/\/dlq\/messages\?q=status:PENDING\+topic:orders\.v1$/);
    await openMenu(page);
    await views.getByRole('button', { name: 'Rename waiting orders' }).click();
    const name = page.getByRole('textbox', { name: 'Name' });
    await name.and(page.locator(':focus')).waitFor();
    await name.fill('orders to do');
    await page.keyboard.press('Enter');
    await page.getByRole('status').getByText('Renamed to orders to do.').waitFor();
    await openMenu(page);
    await views.getByRole('button', { name: 'Delete orders to do' }).click();
    await views.getByText('No saved views of this list').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Undo' }).last().click();
    await openMenu(page);
    await views.getByRole('link', { name: /^orders to do/ }).waitFor();
  });

  test('a view belongs to its list, and a name that is taken is refused in the dialog', async (t) => {
    const page = await open(t, '/jobs/list?q=queue:mail', { expectedErrors: [/409/] });
    await (await save(page, 'mail')).waitFor({ state: 'detached' });
    await page.goto(`${system.url}/jobs/list?q=queue:reports`);
    const dialog = await save(page, 'mail');
    await dialog.getByRole('alert').waitFor();
    await page.keyboard.press('Escape');
    await page.goto(`${system.url}/sagas`);
    await (await openMenu(page)).getByText('No saved views of this list').waitFor();
  });

  test('others see what is shared, and nothing else', async (t) => {
    const page = await open(t, '/dlq/groups?q=topic:orders.v1');
    await (await save(page, 'shared groups', true)).waitFor({ state: 'detached' });
    await page.goto(`${system.url}/dlq/groups?q=topic:carts.v1`);
    await (await save(page, 'own groups')).waitFor({ state: 'detached' });
    const other = await open(t, '/dlq/groups', { as: 'sys_auditor', person: 'bea' });
    const views = await openMenu(other);
    await views.getByRole('link', { name: /^shared groups/ }).waitFor();
    assert.equal(await views.getByRole('link', { name: /^own groups/ }).count(), 0);
    assert.equal(await views.getByRole('button', { name: /Delete/ }).count(), 0);
  });

  test('who may not share sees why', async (t) => {
    const page = await open(t, '/dlq/groups?q=topic:x', { as: 'sys_auditor', person: 'bea' });
    await page.getByRole('button', { name: 'Save view…' }).click();
    const share = page.getByRole('checkbox', { name: /Share.*console:views:share/ });
    await share.waitFor();
    assert.equal(await share.getAttribute('aria-disabled'), 'true');
    await share.click({ force: true });
    assert.equal(await share.isChecked(), false);
  });

  test('a filter that is too long to be saved is refused with its length', async (t) => {
    const page = await open(t, `/dlq/groups?q=error:${'x'.repeat(2100)}`, {
      expectedErrors: [/400/],
    });
    const dialog = await save(page, 'long');
    await dialog
      .getByRole('alert')
      .getByText(/too long to be saved/)
      .waitFor();
  });

  test('a server that fails is an error, and not a list without views', async (t) => {
    const page = await open(t, '/dlq/groups', { expectedErrors: [/503/] });
    await page.route('**/api/v1/views', (route) =>
      route.fulfill({ status: 503, json: { error: { code: 'SYS_CONSOLE_UNAVAILABLE', message: 'broken' } } }),
    );
    const views = await openMenu(page);
    await views.getByRole('alert').getByText('SYS_CONSOLE_UNAVAILABLE').waitFor();
    assert.equal(await views.getByText('No saved views').count(), 0);
  });
});
