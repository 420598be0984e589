import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { assertAccessible } from '../../support/console/assert-accessible.ts';
import { startGuardedConsole, type ConsoleSystem } from '../../support/console/console-system.ts';
import { describeConsole } from '../../support/console/console-tests.ts';
import { openConsole } from '../../support/console/open-console.ts';
import { storeFailures } from '../../support/console/store-failures.ts';

describeConsole('groups of failures', (browser) => {
  let system: ConsoleSystem;
  let timeouts: string;
  before(async () => {
    system = await startGuardedConsole();
    timeouts = await storeFailures(system.db, { name: 'timeout', count: 40, keys: 4 });
    await storeFailures(system.db, { name: 'timeout', count: 3, status: 'DEAD', topic: 'refunds.v1' });
    await storeFailures(system.db, {
      name: 'invalid',
      count: 2,
      topic: 'carts.v1',
      group: 'audit',
      errorClass: 'com.acme.ValidationError',
      template: 'qty must be > 0',
    });
  });
  after(() => system.drop());

  test('the list shows causes with figures, and filters by what they are counted by', async (t) => {
    const page = await openConsole(t, { browser, system, path: '/dlq/groups' });
    const row = page.getByRole('row', { name: /TimeoutException/ });
    await row.getByText('40 PENDING').waitFor();
    await row.getByText('3 DEAD').waitFor();
    await row.getByRole('img', { name: /43 in 24 hours/ }).waitFor();
    await page.getByRole('combobox', { name: 'Filter' }).fill('topic:carts.v1');
    await page.keyboard.press('Enter');
    await page.getByRole('row', { name: /ValidationError/ }).waitFor();
    await row.waitFor({ state: 'detached' });
    assert.match(page.url(), /\?q=topic:carts\.v1$/);
    await page.getByRole('button', { name: 'Remove topic:carts.v1' }).first().click();
    await page.getByRole('button', { name: /^DEAD/ }).click();
    await row.getByText('3 DEAD').waitFor();
    await page.getByRole('row', { name: /ValidationError/ }).waitFor({ state: 'detached' });
  });

  test('by keyboard alone: from the list to the group, and to its plan', async (t) => {
    const page = await openConsole(t, { browser, system, path: '/dlq/groups' });
    await page.getByRole('link', { name: /ValidationError/ }).waitFor();
    await page.locator('[data-row-link]').first().focus();
    const first = await page.locator(':focus').textContent();
    await page.keyboard.press('j');
    assert.notEqual(await page.locator(':focus').textContent(), first);
    await page.keyboard.press('k');
    await page.keyboard.press('r');
    await page.waitForURL(/\/dlq\/redrives\/new\?fingerprint=v2:/);
  });

  test('a group says why it is one, whom it concerns, and leads to its messages and its plan', async (t) => {
    const page = await openConsole(t, { browser, system, path: `/dlq/groups/${timeouts}` });
    await page.getByRole('heading', { name: /^Group: payment-gateway did not answer/ }).waitFor();
    await page.getByText('com.acme.PaymentClient.charge').waitFor();
    const keys = page.getByRole('region', { name: 'Most frequent keys' });
    await keys
      .getByRole('row', { name: /customer-0/ })
      .getByText('26%')
      .waitFor();
    const topics = page.getByRole('region', { name: 'By topic and consumer group' });
    await topics
      .getByRole('row', { name: /refunds\.v1/ })
      .getByText('3 DEAD')
      .waitFor();
    await page.getByRole('link', { name: '43 messages' }).click();
    await page.waitForURL(new RegExp(`/dlq/messages\\?q=fingerprint:${timeouts}$`));
    await page.goBack();
    await page.getByRole('button', { name: /Plan redrive of 43/ }).click();
    await page.waitForURL(new RegExp(`/dlq/redrives/new\\?fingerprint=${timeouts}$`));
  });

  test('who may not plan sees the button, disabled, with the reason', async (t) => {
    const page = await openConsole(t, {
      browser,
      system,
      path: `/dlq/groups/${timeouts}`,
      as: 'sys_auditor',
    });
    const button = page.getByRole('button', { name: /Plan redrive/, description: /dlq:redrives:plan/ });
    assert.equal(await button.getAttribute('aria-disabled'), 'true');
  });

  test('an unknown group and a failing server are errors, never an empty page', async (t) => {
    const page = await openConsole(t, {
      browser,
      system,
      path: '/dlq/groups/v2:0123',
      expectedErrors: [/404/, /500/],
    });
    await page.getByRole('alert').getByText('SYS_DLQ_NOT_FOUND').waitFor();
    await page.route('**/api/v1/dlq/groups?**', (route) =>
      route.fulfill({ status: 500, json: { error: { code: 'SYS_DLQ_INTERNAL_ERROR', message: 'broken' } } }),
    );
    await page.goto(`${system.url}/dlq/groups`);
    await page.getByRole('alert').getByText('SYS_DLQ_INTERNAL_ERROR').waitFor();
    assert.equal(await page.getByText('No failures are stored').count(), 0);
  });

  for (const theme of ['light', 'dark'] as const)
    test(`both pages are accessible: ${theme}`, async (t) => {
      const page = await openConsole(t, {
        browser,
        system,
        path: '/dlq/groups',
        theme,
        language: theme === 'dark' ? 'ja' : 'en',
      });
      await page.getByRole('row', { name: /TimeoutException/ }).waitFor();
      await assertAccessible(page);
      await page.goto(`${system.url}/dlq/groups/${timeouts}`);
      await page.getByText('com.acme.PaymentClient.charge').waitFor();
      await assertAccessible(page);
    });
});
