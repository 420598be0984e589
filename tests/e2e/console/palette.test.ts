import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { sql } from '../../../src/platform/postgres/sql.ts';
import { assertAccessible } from '../../support/console/assert-accessible.ts';
import { startGuardedConsole, type ConsoleSystem } from '../../support/console/console-system.ts';
import { describeConsole } from '../../support/console/console-tests.ts';
import { openConsole } from '../../support/console/open-console.ts';
import { storeJobs } from '../../support/console/store-jobs.ts';

const hostile = '<img src=x onerror="document.title=\'owned\'">{{7*7}}';
const trace = '4bf92f3577b34da6a3ce929d0e0e4736';

describeConsole('the palette', (browser) => {
  let system: ConsoleSystem;
  let jobs: readonly string[];
  let message = '';
  before(async () => {
    system = await startGuardedConsole({
      more: { roles: ['api', 'workers'], jobs: { queues: { 'in-mail': {} } } },
    });
    jobs = await storeJobs(system.db, {
      queue: 'in-mail',
      count: 3,
      status: 'dead_letter',
      error: 'no such user',
    });
    const [stored] = await system.db.query<{ id: string }>(sql`
      INSERT INTO dlq.dlq_messages (original_topic, error_message, source_topic, message_key, headers)
      SELECT topic, 'boom', topic || '.dlq', convert_to('C-17', 'UTF8'),
             jsonb_build_array(jsonb_build_object('key', 'traceparent', 'value', '00-' || ${trace}::text || '-00f067aa0ba902b7-01'))
      FROM unnest(ARRAY['in.orders', 'in.orders', ${hostile}]) AS topic
      RETURNING id`);
    message = stored?.id ?? '';
    await system.db.query(
      sql`SELECT jobs.enqueue('in-mail', '{}'::jsonb, p_trace => ${`00-${trace}-00f067aa0ba902b7-01`})`,
    );
  });
  after(() => system.drop());

  const open = async (page: Page, text: string): Promise<void> => {
    await page.keyboard.press('Control+k');
    const box = page.getByRole('combobox', { name: 'Find or do' });
    await box.waitFor();
    if (text !== '') await page.keyboard.type(text);
  };

  test('by keyboard alone: a pasted id leads to the item, and back to where one was', async (t) => {
    const page = await openConsole(t, { browser, system, path: '/jobs/list' });
    await page.locator('[data-row-link]').first().focus();
    await open(page, jobs[0] ?? '');
    await page.getByRole('option', { name: new RegExp(`job ${jobs[0]}`) }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    assert.ok(await page.evaluate('document.activeElement.hasAttribute("data-row-link")'));
    await open(page, jobs[0] ?? '');
    await page.getByRole('option', { name: new RegExp(`job ${jobs[0]}`) }).waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(new RegExp(`/jobs/list/${jobs[0]}$`));
    // Where somebody was is offered again.
    await open(page, '');
    await page
      .getByRole('group', { name: 'Recent' })
      .getByRole('option', { name: new RegExp(`${jobs[0]}`) })
      .waitFor();
  });

  test('a key and a trace lead to messages and jobs; what comes from outside is text', async (t) => {
    const page = await openConsole(t, { browser, system, path: '/system' });
    await open(page, 'C-17');
    const found = page.getByRole('group', { name: 'Found' });
    await found
      .getByRole('option', { name: /message .* by its key/ })
      .nth(2)
      .waitFor();
    await found.getByText('{{7*7}}').waitFor();
    assert.notEqual(await page.title(), 'owned');
    await page.keyboard.press('Control+A');
    await page.keyboard.type(trace);
    await found.getByRole('option', { name: /job .* by its trace/ }).waitFor();
    await page.keyboard.press('Control+A');
    await page.keyboard.type('no such key');
    await page.getByText(/^Nothing was found/).waitFor();
  });

  test('it goes to pages, and runs what the page and the selection can do', async (t) => {
    const page = await openConsole(t, { browser, system });
    await open(page, 'queues');
    await page.getByRole('option', { name: /Jobs › Queues/ }).waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/jobs\/queues$/);
    await page.goto(`${system.url}/jobs/list?q=status:dead_letter`);
    await page.locator('[data-row-link]').first().focus();
    await page.keyboard.press('x');
    await open(page, 'discard');
    await page.getByRole('option', { name: /Discard 1/ }).waitFor();
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('alertdialog');
    await dialog.getByRole('textbox', { name: 'Reason' }).waitFor();
    await page.keyboard.press('Escape');
    await page.goto(`${system.url}/jobs/list/${jobs[1]}`);
    await page.getByRole('button', { name: /^Requeue/ }).waitFor();
    await open(page, 'requeue');
    await page.getByRole('option', { name: /^Requeue/ }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByText(/^Requeued: it waits in in-mail/).waitFor();
  });

  test('what is forbidden is shown with the reason, and does nothing', async (t) => {
    const path = `/jobs/list/${jobs[2]}`;
    const page = await openConsole(t, { browser, system, path, as: 'sys_auditor' });
    await page.getByRole('button', { name: /^Requeue/ }).waitFor();
    await open(page, 'requeue');
    const option = page.getByRole('option', { name: /Requeue.*jobs:jobs:requeue/ });
    await option.waitFor();
    assert.equal(await option.getAttribute('aria-disabled'), 'true');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Escape');
    const { body } = await system.api.get<{ status: string }>(`/api/v1/jobs/${jobs[2]}`);
    assert.equal(body.status, 'dead_letter');
  });

  test('a narrowed role finds nothing outside its scope', async (t) => {
    const page = await openConsole(t, { browser, system, path: '/jobs/list', as: 'narrow_sys_operator' });
    await open(page, 'C-17');
    const found = page.getByRole('group', { name: 'Found' });
    await found
      .getByRole('option', { name: /in\.orders/ })
      .nth(1)
      .waitFor();
    assert.equal(await found.getByRole('option').count(), 2);
  });

  test('a search that fails, or that misses a module, says so and not that there is nothing', async (t) => {
    const page = await openConsole(t, { browser, system, path: '/system', expectedErrors: [/500/] });
    await page.route('**/api/v1/find*', (route) =>
      route.fulfill({ status: 500, json: { error: { code: 'SYS_HTTP_INTERNAL', message: 'broken' } } }),
    );
    await open(page, 'C-17-x');
    await page.getByRole('alert').getByText('The search failed: broken').waitFor();
    assert.equal(await page.getByText(/^Nothing was found/).count(), 0);
    await page.unroute('**/api/v1/find*');
    await page.route('**/api/v1/find*', (route) =>
      route.fulfill({ json: { items: [], unavailable: ['jobs'], as_of: '2026-11-19T12:00:00Z' } }),
    );
    await page.keyboard.type('y');
    await page.getByRole('alert').getByText('These could not be searched: jobs').waitFor();
    assert.equal(await page.getByText(/^Nothing was found/).count(), 0);
  });

  test('it is loaded when it is first used', async (t) => {
    const page = await openConsole(t, { browser, system, path: '/system' });
    const scripts = async (): Promise<readonly string[]> =>
      page.evaluate('performance.getEntriesByType("resource").map(({ name }) => name)');
    assert.equal((await scripts()).filter((name) => /\/palette-/.test(name)).length, 0);
    await open(page, '');
    assert.notEqual((await scripts()).filter((name) => /\/palette-/.test(name)).length, 0);
  });

  test('a message shows what has the same key or trace, and newer messages of its key', async (t) => {
    const page = await openConsole(t, { browser, system, path: `/dlq/messages/${message}` });
    await page.keyboard.press('5');
    const key = page.getByRole('region', { name: 'Same key' });
    await key.getByText(/newer message|No newer message/).waitFor();
    assert.equal(await key.getByRole('row', { name: /^message/ }).count(), 2);
    await page.getByRole('region', { name: 'Same trace' }).getByRole('row', { name: /^job/ }).waitFor();
    await assertAccessible(page);
  });

  for (const [theme, language] of [
    ['light', 'en'],
    ['dark', 'ja'],
  ] as const)
    test(`is accessible, also on a phone: ${theme}, ${language}`, async (t) => {
      const page = await openConsole(t, { browser, system, path: '/jobs/list', theme, language });
      await page.locator('[data-row-id]').first().waitFor();
      for (const width of [1440, 390, 320]) {
        await page.setViewportSize({ width, height: 844 });
        assert.equal(await page.evaluate('document.documentElement.scrollWidth'), width);
        await page.keyboard.press('Control+k');
        await page.getByRole('option').first().waitFor();
        await assertAccessible(page);
        await page.keyboard.press('Escape');
        await page.getByRole('dialog').waitFor({ state: 'detached' });
      }
    });
});
