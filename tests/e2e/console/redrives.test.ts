import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { sql } from '../../../src/platform/postgres/sql.ts';
import { assertAccessible } from '../../support/console/assert-accessible.ts';
import {
  startConsoleSystem,
  startGuardedConsole,
  type ConsoleSystem,
} from '../../support/console/console-system.ts';
import { describeConsole } from '../../support/console/console-tests.ts';
import { openConsole } from '../../support/console/open-console.ts';
import { storeFailures } from '../../support/console/store-failures.ts';
import { planRedrive, showRedrive } from '../../support/redrives.ts';
import { startTestConsumer, type TestConsumer } from '../../support/test-consumer.ts';

describeConsole('redrives', (browser) => {
  let system: ConsoleSystem;
  let consumer: TestConsumer;
  let isFixed = false;
  before(async () => {
    system = await startConsoleSystem({ kafka: 'local' });
    const { broker } = system;
    assert.ok(broker !== null);
    for (const topic of ['orders.v1', 'orders.v1.dlq', 'slow.v1']) await broker.createTopic(topic, 1);
    consumer = startTestConsumer(broker, {
      topic: 'orders.v1',
      deadLetterTopic: 'orders.v1.dlq',
      group: 'billing',
      judge: ({ headers }) =>
        isFixed
          ? null
          : { headers: [...headers, { key: Buffer.from('error'), value: Buffer.from('broken') }] },
    });
    await storeFailures(system.db, { name: 'timeout', count: 12 });
    await storeFailures(system.db, { name: 'timeout', count: 3, status: 'DEAD' });
    await storeFailures(system.db, { name: 'slow', count: 30, topic: 'slow.v1', group: null });
  });
  after(async () => {
    await consumer.stop();
    await system.drop();
  });

  const fill = async (page: Page, label: string, text: string): Promise<void> =>
    page.getByLabel(label, { exact: true }).fill(text);

  test('a canary stops by itself, goes on when a person says so, and its receipt adds up', async (t) => {
    const page = await openConsole(t, { browser, system, path: '/dlq/redrives/new?q=topic:orders.v1' });
    await fill(page, 'Reason', 'deploy 4411 fixed it');
    await fill(page, 'Stages', '2');
    await fill(page, 'Watch for (seconds)', '1');
    await page.getByLabel('Reason', { exact: true }).press('Control+Enter');
    await page.getByText('12 go + 3 excluded = 15 that match').waitFor();
    await page.getByRole('row', { name: /no attempt left 3/ }).waitFor();
    await page.getByRole('row', { name: /orders\.v1 12 billing/ }).waitFor();
    await page.keyboard.press('Control+Enter');
    const dialog = page.getByRole('alertdialog');
    await dialog.getByText(/12 messages will be published to orders\.v1/).waitFor();
    await page.keyboard.press('Control+Enter');

    const stopped = page.getByRole('region', { name: 'The redrive has stopped' });
    await stopped.waitFor();
    await stopped.getByText('Some that came back').waitFor();
    await page.getByRole('listitem').filter({ hasText: 'to 2' }).waitFor();
    isFixed = true;
    await stopped.getByRole('button', { name: 'Continue anyway…' }).click();
    await dialog.getByRole('button', { name: 'Continue' }).isDisabled();
    await dialog.getByLabel('Reason').fill('the consumer was restarted');
    await page.keyboard.press('Control+Enter');

    await page.getByText('Every message has its outcome.').waitFor();
    await page.getByText(/^10 published \+ 2 came back = 12 selected$/).waitFor();
    await page.getByText(/2 messages that wait/).waitFor({ state: 'detached' });
    await page.getByRole('combobox', { name: 'Outcome' }).selectOption('came_back');
    await page.getByText('2 of 2').waitFor();
    assert.match(page.url(), /\?outcome=came_back$/);
  });

  test('pause, resume and cancel act within a second, and a reload shows the same redrive', async (t) => {
    const { id } = await planRedrive(system.api, {
      filter: { topic: 'slow.v1' },
      rate_per_second: 2,
      canary: null,
    });
    const page = await openConsole(t, { browser, system, path: `/dlq/redrives/${id}` });
    await page.getByRole('button', { name: /^Redrive 30 messages/ }).click();
    await page
      .getByRole('alertdialog')
      .getByRole('button', { name: /^Redrive 30 messages/ })
      .click();
    await page.getByText('You can leave this page').waitFor();
    await page.getByRole('alertdialog').waitFor({ state: 'detached' });
    await page.keyboard.press('p');
    await page.getByRole('button', { name: /^Resume/ }).waitFor();
    await page.reload();
    await page.getByText('No message is sent until it is resumed.').waitFor();
    // Every page shows it at the top, also after a reload.
    await page.goto(`${system.url}/system`);
    for (const again of [false, true]) {
      if (again) await page.reload();
      await page.getByRole('button', { name: /^Operations: / }).click();
      const entry = page.getByRole('region', { name: 'Operations' }).getByRole('link', { name: /of 30/ });
      await entry.getByText('paused').waitFor();
      if (again) await entry.click();
    }
    await page.waitForURL(new RegExp(`/dlq/redrives/${id}$`));
    await page.getByText('No message is sent until it is resumed.').waitFor();
    await page.keyboard.press('p');
    await page.getByRole('button', { name: /^Pause/ }).waitFor();
    await fill(page, 'Messages per second', '1');
    await page.getByRole('button', { name: 'Change pace' }).click();
    await page.getByText('effective within a second').waitFor();
    await page.getByText(/of 1\/s/).waitFor();
    await page.getByRole('button', { name: 'Cancel…' }).click();
    await page
      .getByRole('alertdialog')
      .getByRole('button', { name: /^Cancel the redrive/ })
      .click();
    await page.getByText(/published \+ \d+ cancelled = 30 selected/).waitFor();
    const { counts } = await showRedrive(system.api, id);
    assert.ok((counts['cancelled'] ?? 0) > 20, 'the rest was not sent');
  });

  test('a plan selects what was there, and not what arrives meanwhile', async (t) => {
    await storeFailures(system.db, { name: 'late', count: 5, topic: 'late.v1' });
    const page = await openConsole(t, { browser, system, path: '/dlq/redrives/new?q=topic:late.v1' });
    await page.getByRole('radio', { name: 'Delete' }).check();
    assert.equal(await page.getByRole('group', { name: 'Canary' }).count(), 0);
    await fill(page, 'Reason', 'test data');
    await page.getByRole('button', { name: /^Make the plan/ }).click();
    await page.getByText('5 go + 0 excluded = 5 that match').waitFor();
    await storeFailures(system.db, { name: 'late', count: 2, topic: 'late.v1' });
    await page.getByRole('button', { name: /^Delete: 5 messages/ }).click();
    await page
      .getByRole('alertdialog')
      .getByRole('button', { name: /^Delete: 5 messages/ })
      .click();
    await page.getByText('5 done = 5 selected').waitFor();
    const [left] = await system.db.query<{ count: number }>(
      sql`SELECT count(*)::int AS count FROM dlq.dlq_messages WHERE original_topic = 'late.v1'`,
    );
    assert.equal(left?.count, 2);
  });

  test('what is wrong with a form stands beside its field, and nothing is planned', async (t) => {
    const page = await openConsole(t, { browser, system, path: '/dlq/redrives/new?q=topic:orders.v1' });
    await fill(page, 'Stages', '5, 1');
    await fill(page, 'Messages per second', 'fast');
    await page.getByRole('button', { name: /^Make the plan/ }).click();
    await page.getByText('Reason: required, at most 1000 characters.').waitFor();
    await page.getByText('Whole numbers that grow').waitFor();
    await page.getByText('A number from 0.1').waitFor();
    assert.match(page.url(), /\/new\?q=/);
    await page.goto(`${system.url}/dlq/redrives/new?q=colour:red`);
    await page
      .getByRole('alert')
      .getByText(/unknown qualifier/)
      .waitFor();
    await page.getByRole('button', { name: /Make the plan/, description: /cannot be used/ }).waitFor();
  });

  test('a failing server is an error, and never a list without redrives', async (t) => {
    const page = await openConsole(t, {
      browser,
      system,
      path: '/dlq/redrives',
      expectedErrors: [/404/, /500/],
    });
    await page.getByRole('row').nth(1).waitFor();
    const failure = { status: 500, json: { error: { code: 'SYS_DLQ_INTERNAL_ERROR', message: 'broken' } } };
    await page.route('**/api/v1/dlq/redrives**', (route) => route.fulfill(failure));
    await page.reload();
    await page.getByRole('alert').getByText('SYS_DLQ_INTERNAL_ERROR').waitFor();
    assert.equal(await page.getByText('No redrives yet').count(), 0);
    await page.unrouteAll();
    await page.goto(`${system.url}/dlq/redrives/01900000-0000-7000-8000-000000000000`);
    await page.getByRole('alert').getByText('SYS_DLQ_NOT_FOUND').waitFor();
  });

  for (const theme of ['light', 'dark'] as const)
    test(`all pages are accessible: ${theme}`, async (t) => {
      const page = await openConsole(t, {
        browser,
        system,
        path: '/dlq/redrives/new?q=topic:orders.v1',
        theme,
        language: theme === 'dark' ? 'ja' : 'en',
      });
      await page.locator('textarea').waitFor();
      await assertAccessible(page);
      await page.goto(`${system.url}/dlq/redrives`);
      await page.locator('[data-row-link]').first().waitFor();
      await assertAccessible(page);
      await page.locator('[data-row-link]').first().click();
      await page.locator('[data-row-link]').first().waitFor();
      await assertAccessible(page);
    });
});

describeConsole('redrives for those who may only read', (browser) => {
  let system: ConsoleSystem;
  before(async () => {
    system = await startGuardedConsole();
    await storeFailures(system.db, { name: 'timeout', count: 2 });
  });
  after(() => system.drop());

  test('a large plan is approved by a second person, and then started by the first', async (t) => {
    await storeFailures(system.db, { name: 'large', count: 1001, topic: 'large.v1' });
    const planner = await openConsole(t, {
      browser,
      system,
      as: 'sys_operator',
      path: '/dlq/redrives/new?q=topic:large.v1',
    });
    await planner.getByRole('radio', { name: 'Mark dead' }).check();
    await planner.getByLabel('Reason', { exact: true }).fill('the shop closed');
    await planner.getByRole('button', { name: /^Make the plan/ }).click();
    await planner.getByRole('button', { name: /^Mark dead/, description: /second person/ }).waitFor();
    const other = await openConsole(t, {
      browser,
      system,
      as: 'sys_admin',
      person: 'grace',
      path: new URL(planner.url()).pathname,
    });
    await other.getByRole('button', { name: 'Approve…' }).click();
    await other.getByRole('alertdialog').getByLabel('Reason').fill('agreed');
    await other.keyboard.press('Control+Enter');
    await other.getByText('Approved by').waitFor();
    await planner.getByRole('button', { name: /^Mark dead: 1.001 messages/ }).click();
    await planner
      .getByRole('alertdialog')
      .getByRole('button', { name: /^Mark dead/ })
      .click();
    await planner.getByText(/^1.001 done = 1.001 selected$/).waitFor();
  });

  test('every button is there, disabled, with the right that it needs', async (t) => {
    const { id } = await planRedrive(system.api, { filter: { topic: 'orders.v1' } });
    const open = { browser, system, as: 'sys_auditor' };
    const page = await openConsole(t, { ...open, path: `/dlq/redrives/${id}` });
    await page.getByRole('button', { name: /^Redrive 2/, description: /dlq:redrives:start/ }).waitFor();
    await page.getByRole('button', { name: /^Discard/, description: /dlq:redrives:cancel/ }).waitFor();
    await page.keyboard.press('Control+Enter');
    assert.equal(await page.getByRole('alertdialog').count(), 0);
    await page.goto(`${system.url}/dlq/redrives`);
    await page.getByRole('button', { name: /^Plan a redrive/, description: /dlq:redrives:plan/ }).waitFor();
  });
});
