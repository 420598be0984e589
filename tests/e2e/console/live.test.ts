import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { sql } from '../../../src/platform/postgres/sql.ts';
import { startConsoleSystem, type ConsoleSystem } from '../../support/console/console-system.ts';
import { describeConsole } from '../../support/console/console-tests.ts';
import { openConsole } from '../../support/console/open-console.ts';
import { storeFailures } from '../../support/console/store-failures.ts';

describeConsole('live lists', (browser) => {
  let system: ConsoleSystem;
  before(async () => {
    system = await startConsoleSystem({ kafka: 'local' });
    const { broker } = system;
    assert.ok(broker !== null);
    await broker.createTopic('orders.v1', 1);
  });
  after(() => system.drop());
  beforeEach(() => system.db.query(sql`TRUNCATE dlq.dlq_messages CASCADE`));

  const live = (page: Page): Locator => page.getByRole('button', { name: /^Live/ });
  const store = (name: string, count = 1): Promise<string> =>
    storeFailures(system.db, { name, count, topic: 'orders.v1' });
  const rowOf = (page: Page, name: string): Locator => page.getByRole('row', { name: new RegExp(name) });
  const setStatus = (name: string, status: string): Promise<unknown> =>
    system.db.query(sql`
      UPDATE dlq.dlq_messages SET status = ${status} WHERE error_message LIKE ${`%(${name})`}`);

  /** Opens the list with rows, and waits until it is live. */
  async function openList(t: Parameters<typeof openConsole>[0], path = '/dlq/messages'): Promise<Page> {
    const page = await openConsole(t, { browser, system, path });
    await live(page).waitFor();
    await page.locator('[data-row-id]').first().waitFor();
    return page;
  }

  test('the first five minutes: a dead letter arrives, is retried and is seen to be resolved', async (t) => {
    await store('before', 3);
    const page = await openList(t);
    await store('first');
    await page.getByRole('button', { name: '1 new' }).click();
    await page.getByRole('link', { name: /first/ }).click();
    await page.getByRole('button', { name: /^Retry → orders.v1/ }).waitFor();
    await page.keyboard.press('r');
    await page.getByText('RESOLVED', { exact: true }).first().waitFor();
  });

  test('an empty list shows the first row by itself', async (t) => {
    const page = await openConsole(t, { browser, system, path: '/dlq/messages' });
    await page.getByRole('heading', { name: 'No dead letters are stored' }).waitFor();
    await live(page).waitFor();
    await store('only');
    await page.getByRole('link', { name: /only/ }).waitFor();
  });

  test('new rows are counted, and nothing under the pointer or the focus moves', async (t) => {
    await store('old', 60);
    const page = await openList(t);
    const row = page.locator('[data-row-id]').nth(10);
    await row.hover();
    await page.locator('[data-row-link]').nth(10).focus();
    await page.evaluate("document.getElementById('content').scrollTo(0, 120)");
    const at = (): Promise<unknown> =>
      page.evaluate(`(() => {
        const element = document.querySelectorAll('[data-row-id]')[10];
        return {
          id: element.dataset.rowId,
          top: element.getBoundingClientRect().top,
          scrolled: document.getElementById('content').scrollTop,
          isFocused: element.contains(document.activeElement),
          isSame: (window.row ??= element) === element,
        };
      })()`);
    const before = await at();
    await store('new', 37);
    const pill = page.getByRole('button', { name: '37 new' });
    await pill.waitFor();
    assert.deepEqual(await at(), before);
    assert.equal(await page.locator('[data-row-id]').count(), 60);
    await page.keyboard.press('Shift+Period');
    await page.locator('[data-row-id]').nth(96).waitFor();
    await pill.waitFor({ state: 'detached' });
  });

  test('a row that changes is patched in place, and its cell is marked for a moment', async (t) => {
    await store('patched');
    await store('other', 5);
    const page = await openList(t);
    const row = rowOf(page, 'patched');
    const patchedRow = `[...document.querySelectorAll('[data-row-id]')].find((one) => one.textContent.includes('patched'))`;
    await page.evaluate(`void (window.row = ${patchedRow})`);
    await setStatus('patched', 'DEAD');
    await page.locator('[data-changed="true"]').waitFor();
    await row.getByText('DEAD').waitFor();
    assert.ok(await page.evaluate(`window.row === ${patchedRow}`));
    await page.locator('[data-changed="true"]').waitFor({ state: 'detached' });
  });

  test('a row that matches no more stays with its new status, and goes with the next load', async (t) => {
    await store('leaving');
    await store('staying', 3);
    const page = await openList(t, '/dlq/messages?q=status:PENDING');
    await setStatus('leaving', 'RESOLVED');
    const gone = page.locator('[data-gone="true"]');
    await gone.waitFor();
    await gone.getByText('RESOLVED').waitFor();
    assert.match((await gone.textContent()) ?? '', /leaving.*no longer matches/s);
    await store('arriving');
    await page.getByRole('button', { name: '1 new' }).click();
    await gone.waitFor({ state: 'detached' });
    assert.equal(await rowOf(page, 'leaving').count(), 0);
  });

  test('a selection holds updates, and the indicator says why; they come when it is cleared', async (t) => {
    await store('held', 3);
    const page = await openList(t);
    await page
      .getByRole('checkbox', { name: /Select/ })
      .nth(1)
      .check();
    await page.getByRole('button', { name: /^Held: 1 selected/ }).waitFor();
    await store('later');
    await setStatus('held', 'DEAD');
    await untilHeard(page);
    assert.equal(await page.locator('[data-row-id]').getByText('DEAD').count(), 0);
    await page.getByRole('button', { name: /Clear selection/ }).click();
    await rowOf(page, 'held').first().getByText('DEAD').waitFor();
    await page.getByRole('button', { name: '2 new' }).waitFor();
  });

  test('text that is selected, and a dialog, hold updates as well', async (t) => {
    await store('read');
    const page = await openList(t);
    await page.evaluate(`getSelection().selectAllChildren(document.querySelector('[data-column=error]'))`);
    await page.getByRole('button', { name: /^Held: selected text/ }).waitFor();
    await page.evaluate('getSelection().removeAllRanges()');
    await live(page).waitFor();
    await page.getByRole('link', { name: /read/ }).click();
    await page.getByRole('button', { name: /^Retry → orders.v1/ }).waitFor();
    await page.getByRole('button', { name: 'Give up…' }).click();
    await page.getByRole('alertdialog').waitFor();
    await page.getByText('Held: open dialog').first().waitFor();
    await page.keyboard.press('Escape');
    await live(page).waitFor();
  });

  test('the key . pauses and resumes', async (t) => {
    await store('paused', 2);
    const page = await openList(t);
    await page.keyboard.press('.');
    await page.getByRole('button', { name: /^Paused by you.*Resume updates/ }).waitFor();
    await store('later');
    await untilHeard(page);
    assert.equal(await page.getByRole('button', { name: '1 new' }).count(), 0);
    await page.keyboard.press('.');
    await page.getByRole('button', { name: '2 new' }).waitFor();
  });

  test('seven tabs share one stream, and all are live; when its tab closes, another one takes over', async (t) => {
    await store('tabs', 2);
    const first = await openList(t);
    const context = first.context();
    const streams: Page[] = [];
    context.on('request', (request) => {
      if (request.url().endsWith('/api/v1/events')) streams.push(request.frame().page());
    });
    const tabs: Page[] = [];
    for (let i = 0; i < 6; i += 1) {
      const page = await openConsole(t, { browser, system, context, path: '/dlq/messages' });
      await live(page).waitFor();
      tabs.push(page);
    }
    await store('for-all');
    for (const page of [first, ...tabs]) await page.getByRole('button', { name: '1 new' }).waitFor();
    assert.equal(streams.length, 0);
    await first.close();
    await store('after');
    for (const page of tabs) await page.getByRole('button', { name: '2 new' }).waitFor();
    assert.equal(streams.length, 1);
  });

  /** Another page has been told what was stored last, and this one a moment ago. */
  async function untilHeard(page: Page): Promise<void> {
    const other = await page.context().newPage();
    await other.goto(`${system.url}/dlq/messages`);
    await live(other).waitFor();
    await other.locator('[data-row-id]').first().waitFor();
    await store('heard');
    await other.getByRole('button', { name: '1 new' }).waitFor();
    await other.close();
  }
});
