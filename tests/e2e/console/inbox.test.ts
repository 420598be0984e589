import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { sql } from '../../../src/platform/postgres/sql.ts';
import { assertAccessible } from '../../support/console/assert-accessible.ts';
import { startGuardedConsole, type ConsoleSystem } from '../../support/console/console-system.ts';
import { describeConsole } from '../../support/console/console-tests.ts';
import { moveToRow, tabTo, typeInto } from '../../support/console/keyboard.ts';
import { openConsole, type OpenOptions } from '../../support/console/open-console.ts';
import { eventually } from '../../support/eventually.ts';
import { storeFailures } from '../../support/console/store-failures.ts';
import { storeJobs } from '../../support/console/store-jobs.ts';

const hostile = '<img src=x onerror="document.title=\'owned\'">{{7*7}}<script>alert(1)</script>';

type TestContext = Parameters<typeof openConsole>[0];

describeConsole('the inbox', (browser) => {
  let system: ConsoleSystem;
  before(async () => {
    system = await startGuardedConsole({ kafka: 'local' });
    assert.ok(system.broker !== null);
    await system.broker.createTopic('orders.v1', 1);
  });
  after(() => system.drop());

  const open = (t: TestContext, options: Partial<OpenOptions> = {}): Promise<Page> =>
    openConsole(t, { browser, system, path: '/inbox', ...options });
  const rowOf = (page: Page, name: string): Locator => page.getByRole('row', { name: new RegExp(name) });
  const live = (page: Page): Locator => page.getByRole('button', { name: /^Live/ });
  const peekOf = (page: Page): Locator => page.getByRole('complementary', { name: 'Preview' });
  const fail = (name: string, count = 3, topic = 'orders.v1'): Promise<string> =>
    storeFailures(system.db, { name, count, topic, template: `${name} did not answer` });

  test('an empty inbox says what the server knows, and shows the first entry by itself', async (t) => {
    const page = await open(t, { path: '/' });
    await page.waitForURL(/\/inbox$/);
    await page.getByRole('heading', { name: 'Nothing needs attention' }).waitFor();
    await page.getByText('No dead letter is stored.').waitFor();
    await assertAccessible(page);
    await live(page).waitFor();
    await fail('first');
    await rowOf(page, 'first did not answer').getByText('3', { exact: true }).waitFor();
    await page.getByText('1 needs attention', { exact: true }).waitFor();
    const rail = page.getByRole('navigation', { name: 'Main' });
    await rail.getByRole('link', { name: /Inbox\W+1 needs attention$/ }).waitFor();
    await rail.getByRole('link', { name: /Dead letters\W+3 need attention$/ }).waitFor();
    await rail.getByRole('link', { name: /Jobs\W+None needs attention$/ }).waitFor();
  });

  test('by keyboard alone: an entry arrives, is owned and noted, is redriven and is done', async (t) => {
    const page = await open(t);
    await rowOf(page, 'first did not answer').waitFor();
    await live(page).waitFor();
    await fail('payment', 2);
    await page.getByRole('button', { name: '1 new' }).waitFor();
    await page.keyboard.press('Shift+Period');
    await moveToRow(page, /payment did not answer/);
    await page.keyboard.press('m');
    await page.getByRole('status').getByText('Assigned to you: payment did not answer').waitFor();
    await rowOf(page, 'payment').getByText('you', { exact: true }).waitFor();
    await page.keyboard.press('n');
    await peekOf(page).getByRole('textbox', { name: 'Note' }).and(page.locator(':focus')).waitFor();
    await page.keyboard.insertText('the gateway was restarted');
    await page.keyboard.press('Control+Enter');
    await peekOf(page).getByText('the gateway was restarted', { exact: true }).waitFor();
    await rowOf(page, 'payment')
      .getByRole('link', { name: /payment/ })
      .and(page.locator(':focus'))
      .waitFor();
    await page.keyboard.press('Escape');
    await peekOf(page).waitFor({ state: 'detached' });
    await page.keyboard.press('r');
    await page.waitForURL(/\/dlq\/redrives\/new\?q=/);
    await tabTo(page, page.getByRole('checkbox', { name: /^Send a few first, and stop if they come back/ }));
    await page.keyboard.press('Space');
    await typeInto(page, page.getByLabel('Reason', { exact: true }), 'the gateway answers again');
    await page.keyboard.press('Control+Enter');
    await page.getByText('2 go + 0 excluded = 2 that match').waitFor();
    await page.keyboard.press('Control+Enter');
    await page.getByRole('alertdialog').locator(':focus').waitFor();
    await page.keyboard.press('Control+Enter');
    await page.getByText('2 published = 2 selected').waitFor();
    await tabTo(page, page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: /^Inbox/ }));
    await page.keyboard.press('Enter');
    await tabTo(page, page.getByRole('link', { name: /^Done today/ }));
    await page.keyboard.press('Enter');
    // The server notes every few seconds which entries have no items any more.
    await eventually(
      async () => {
        await page.getByRole('button', { name: 'Reload' }).click();
        await rowOf(page, 'payment did not answer').waitFor({ timeout: 2000 });
      },
      { withinMs: 60_000 },
    );
  });

  test('snoozing hides an entry until it grows, and can be undone at once', async (t) => {
    await fail('sleepy');
    const page = await open(t);
    await moveToRow(page, /sleepy did not answer/);
    await page.keyboard.press('s');
    const gone = page.locator('[data-gone="true"]').filter({ hasText: 'sleepy' });
    await gone.getByText('Snoozed').waitFor();
    await page.getByRole('button', { name: 'Undo' }).click();
    await gone.waitFor({ state: 'detached' });
    await moveToRow(page, /sleepy did not answer/);
    await page.keyboard.press('s');
    await gone.waitFor();
    await page.getByRole('link', { name: /^Snoozed/ }).click();
    await rowOf(page, 'sleepy did not answer').waitFor();
    assert.match(page.url(), /\?q=is:snoozed$/);
    await fail('sleepy', 4);
    await page.goto(`${system.url}/inbox`);
    await rowOf(page, 'sleepy did not answer').waitFor();
  });

  test('an entry is done by a decision: without a reason nothing happens', async (t) => {
    await fail('decided');
    const page = await open(t);
    await moveToRow(page, /decided did not answer/);
    await page.keyboard.press('d');
    const dialog = page.getByRole('alertdialog', { name: 'Mark as done' });
    await dialog.getByRole('textbox', { name: 'Reason' }).and(page.locator(':focus')).waitFor();
    await page.keyboard.press('Control+Enter');
    await page.keyboard.insertText('superseded by release 12');
    await page.keyboard.press('Control+Enter');
    await dialog.waitFor({ state: 'detached' });
    await page.getByRole('link', { name: /^Done today/ }).click();
    await rowOf(page, 'decided did not answer')
      .getByText(/superseded by release 12/)
      .waitFor();
  });

  test('several entries are assigned and snoozed together', async (t) => {
    for (const name of ['many-a', 'many-b', 'many-c']) await fail(name);
    const page = await open(t, { path: '/inbox?q=many' });
    await rowOf(page, 'many-c').waitFor();
    await moveToRow(page, /many-a/);
    await page.keyboard.press('a');
    await page.keyboard.press('m');
    await page.getByRole('status').getByText('Assigned 3 entries to you.').waitFor();
    await page.getByRole('button', { name: /Snooze 3/ }).click();
    await page.getByRole('status').getByText('Snoozed 3 entries until they grow.').waitFor();
    await page.getByRole('button', { name: 'Undo' }).last().click();
    await page.getByRole('status').getByText('Undone for 3 entries.').waitFor();
  });

  test('what one operator does the other one sees, and nothing moves', async (t) => {
    await fail('shared');
    const one = await open(t);
    const two = await open(t, { as: 'sys_operator', person: 'bea' });
    await live(two).waitFor();
    await rowOf(two, 'shared did not answer').waitFor();
    await two.evaluate(`void (window.row = [...document.querySelectorAll('[data-row-id]')]
      .find((one) => one.textContent.includes('shared')))`);
    await moveToRow(one, /shared did not answer/);
    await one.keyboard.press('m');
    await one
      .getByRole('status')
      .getByText(/Assigned to you: shared/)
      .waitFor();
    await rowOf(two, 'shared').getByText('ada', { exact: true }).waitFor();
    assert.ok(await two.evaluate('window.row.isConnected'), 'the row stayed where it was');
  });

  test('who may only look sees the same, and every action with the reason why not', async (t) => {
    await fail('looked-at');
    const page = await open(t, { as: 'sys_auditor' });
    const verb = rowOf(page, 'looked-at').getByRole('button', {
      name: 'Plan redrive',
      description: /dlq:redrives:plan/,
    });
    assert.equal(await verb.getAttribute('aria-disabled'), 'true');
    await moveToRow(page, /looked-at/);
    await page.keyboard.press('m');
    await page
      .getByRole('alert')
      .getByText(/console:entries:edit/)
      .waitFor();
    await page.keyboard.press('Space');
    for (const name of [/Assign to me/, /Snooze until it grows/, /Done…/, /Add note/])
      await peekOf(page)
        .getByRole('button', { name, description: /console:entries:edit/ })
        .waitFor();
  });

  test('a narrowed role sees the entries of its names, and their numbers', async (t) => {
    await fail('inside', 2, 'in.orders');
    const page = await open(t, { as: 'narrow_sys_operator' });
    await rowOf(page, 'inside did not answer').waitFor();
    assert.equal(await page.locator('[data-row-id]').count(), 1);
    await page.getByRole('link', { name: /^Open 1$/ }).waitFor();
  });

  test('hostile titles and notes are text', async (t) => {
    const title = `${hostile}${'long '.repeat(200)}`;
    await storeFailures(system.db, { name: 'hostile', count: 1, template: title, errorClass: hostile });
    const page = await open(t, { path: '/inbox?q=onerror' });
    await moveToRow(page, /onerror=/);
    await page.keyboard.press('n');
    await peekOf(page).getByRole('textbox', { name: 'Note' }).and(page.locator(':focus')).waitFor();
    await page.keyboard.insertText(hostile);
    await page.keyboard.press('Control+Enter');
    await peekOf(page).getByText(hostile, { exact: true }).waitFor();
    await peekOf(page).getByRole('button', { name: 'Delete this note' }).click();
    await peekOf(page).getByText(hostile, { exact: true }).waitFor({ state: 'detached' });
    assert.doesNotMatch(await page.title(), /owned/);
    assert.equal(await page.locator('img[src="x"]').count(), 0);
  });

  test('a server that fails is an error, and never an empty inbox', async (t) => {
    const page = await open(t, { path: '/system', expectedErrors: [/503/] });
    await page.route('**/api/v1/inbox?**', answer503);
    await page.route('**/api/v1/inbox', answer503);
    await page.goto(`${system.url}/inbox`);
    await page.getByRole('alert').getByText('SYS_CONSOLE_UNAVAILABLE').waitFor();
    assert.equal(await page.getByText('Nothing needs attention').count(), 0);
    const rail = page.getByRole('navigation', { name: 'Main' });
    await rail
      .getByRole('link', { name: /^Inbox\W+How many need attention is not known now: broken/ })
      .waitFor();
    await assertAccessible(page);
  });

  test('a slice that cannot be read is named, its entries stay, and nothing is called empty', async (t) => {
    const { db } = system;
    await storeJobs(db, { queue: 'mail', count: 2, status: 'dead_letter', error: 'no such user' });
    const page = await open(t, { expectedErrors: [/500.*api\/v1\/events/] });
    await rowOf(page, 'no such user').waitFor();
    await live(page).waitFor();
    await db.query(sql`ALTER TABLE jobs.job_queue RENAME TO job_queue_away`);
    try {
      await fail('meanwhile');
      const alert = page.getByRole('alert').filter({ hasText: 'Parts of the inbox are missing' });
      await alert.getByText(/Jobs could not be read/).waitFor();
      assert.equal(await rowOf(page, 'no such user').getAttribute('data-gone'), null);
      await page.goto(`${system.url}/inbox?q=slice:jobs`);
      await alert.waitFor();
      assert.equal(await page.getByText('Nothing needs attention').count(), 0);
    } finally {
      await db.query(sql`ALTER TABLE jobs.job_queue_away RENAME TO job_queue`);
    }
    await page.reload();
    await page.getByRole('heading', { name: 'Inbox', level: 1 }).waitFor();
    await rowOf(page, 'no such user').waitFor();
  });

  for (const [theme, language] of [
    ['light', 'en'],
    ['dark', 'ja'],
  ] as const)
    test(`list and preview are accessible: ${theme}, ${language}`, async (t) => {
      await fail('seen');
      const page = await open(t, { theme, language });
      await page.locator('[data-row-link]').first().focus();
      await page.keyboard.press('Space');
      await page.locator('#entry-notes').waitFor();
      await assertAccessible(page);
      if (language === 'ja') await page.getByRole('heading', { name: '受信箱', level: 1 }).waitFor();
    });

  for (const width of [320, 390])
    test(`at ${width} px nothing is wider than the screen`, async (t) => {
      await fail(`wide-${'x'.repeat(300)}`);
      const page = await open(t, { viewport: { width, height: 844 } });
      await page.locator('[data-row-id]').first().waitFor();
      assert.equal(await page.evaluate('document.documentElement.scrollWidth'), width);
      assert.equal(await page.evaluate("document.getElementById('content').scrollWidth"), width);
      await page.locator('[data-row-link]').first().focus();
      await page.keyboard.press('Space');
      await page.locator('#entry-notes').waitFor();
      await assertAccessible(page);
    });
});

const answer503 = (route: Parameters<Parameters<Page['route']>[1]>[0]): Promise<void> =>
  route.fulfill({ status: 503, json: { error: { code: 'SYS_CONSOLE_UNAVAILABLE', message: 'broken' } } });
