import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
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

const hostile = '<img src=x onerror="document.title=\'owned\'">{{7*7}}<script>alert(1)</script>';

describeConsole('messages', (browser) => {
  let system: ConsoleSystem;
  before(async () => {
    system = await startConsoleSystem({ kafka: 'local' });
    for (const topic of ['orders.v1', 'routed.v1']) await system.broker?.createTopic(topic, 1);
    await storeFailures(system.db, { name: 'timeout', count: 12 });
    await storeFailures(system.db, { name: 'dead', count: 3, status: 'DEAD', topic: 'refunds.v1' });
  });
  after(() => system.drop());

  /** Gives one message of a topic its own value and error. */
  async function storeOne(topic: string, value: Buffer | null, error = 'broken'): Promise<string> {
    const [row] = await system.db.query<{ id: string }>(sql`
      INSERT INTO dlq.dlq_messages (original_topic, error_message, source_topic, message_key, raw_value)
      VALUES (${topic}, ${error}, ${`${topic}.dlq`}, convert_to(${topic}, 'UTF8'), ${value})
      RETURNING id`);
    return row?.id ?? '';
  }

  test('are filtered, previewed and opened by keyboard alone, and the way back leads to the list', async (t) => {
    const page = await openConsole(t, { browser, system, path: '/dlq/messages' });
    await page
      .getByRole('link', { name: /TimeoutException/ })
      .first()
      .waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('status:DEAD');
    await page.keyboard.press('Enter');
    await page.getByText('3 of 3').waitFor();
    await page.locator('[data-row-link]').first().focus();
    await page.keyboard.press(' ');
    const pane = page.getByRole('complementary', { name: 'Preview' });
    await pane.getByText('refunds.v1').first().waitFor();
    assert.match(page.url(), /peek=/);
    await page.keyboard.press('j');
    await page.keyboard.press('Escape');
    await pane.waitFor({ state: 'detached' });
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: /^Message [0-9a-f]{8}$/ }).waitFor();
    await page.keyboard.press('Shift+K');
    await page.getByRole('link', { name: '1 of 3' }).waitFor();
    await page.getByRole('link', { name: '1 of 3' }).click();
    await page.getByText('3 of 3').waitFor();
    assert.match(page.url(), /q=status:DEAD/);
  });

  test('a selection opens a plan, by ids or by the filter', async (t) => {
    const page = await openConsole(t, { browser, system, path: '/dlq/messages?q=topic:orders.v1' });
    await page.getByText('12 of 12').waitFor();
    const boxes = page.getByRole('row').getByRole('checkbox');
    await boxes.nth(1).check();
    await boxes.nth(2).check();
    await page.getByRole('button', { name: 'Plan a redrive of 2' }).click();
    await page.getByText('2 messages chosen one by one').waitFor();
    await page.getByLabel('Reason', { exact: true }).fill('fixed');
    await page.getByRole('button', { name: /^Make the plan/ }).click();
    await page.getByText('2 go + 0 excluded = 2 that match').waitFor();
  });

  test('one is retried, and seen to be resolved', async (t) => {
    const id = await storeOne('orders.v1', Buffer.from('{"n": 1e400, "n": 2}'));
    const page = await openConsole(t, { browser, system, path: `/dlq/messages/${id}` });
    await page.getByRole('button', { name: /^Retry → orders\.v1/ }).waitFor();
    await page.keyboard.press('2');
    await page.getByText('"n": 1e400,').waitFor();
    await page.getByText(/Duplicate keys: n/).waitFor();
    await page.keyboard.press('r');
    await page.getByText('Published to orders.v1.').waitFor();
    await page.getByText('RESOLVED').first().waitFor();
    await page.getByRole('button', { name: /^Retry/, description: /Only a PENDING message/ }).waitFor();
    await page.keyboard.press('4');
    await page.getByRole('cell', { name: /orders\.v1 \/ 0 \/ \d+/ }).waitFor();
  });

  test('whoever comes second sees why, and the new status', async (t) => {
    const id = await storeOne('orders.v1', Buffer.from('{}'));
    const page = await openConsole(t, {
      browser,
      system,
      path: `/dlq/messages/${id}`,
      expectedErrors: [/409/],
    });
    await page.getByRole('button', { name: /^Give up…/ }).click();
    const dialog = page.getByRole('alertdialog');
    await dialog.getByLabel('Reason').fill('nothing to save');
    await system.api.post(`/api/v1/dlq/messages/${id}/retry`);
    await dialog.getByRole('button', { name: /^Give up/ }).click();
    await dialog
      .getByRole('alert')
      .getByText(/RESOLVED/)
      .waitFor();
    await dialog.getByRole('button', { name: /^Cancel/ }).click();
    await page.getByText('RESOLVED').first().waitFor();
  });

  test('one without a known topic says so, is routed and then retried', async (t) => {
    const id = await storeOne('lost', Buffer.from('{}'));
    await system.db.query(sql`UPDATE dlq.dlq_messages SET unroutable = true WHERE id = ${id}`);
    const page = await openConsole(t, { browser, system, path: `/dlq/messages/${id}` });
    await page.getByRole('button', { name: 'Retry', description: /route it first/ }).waitFor();
    await page.getByRole('button', { name: 'Route…' }).click();
    const dialog = page.getByRole('alertdialog');
    await dialog.getByLabel('Topic').fill('routed.v1');
    await dialog.getByLabel('Reason').fill('asked the team');
    await page.keyboard.press('Control+Enter');
    await page.getByRole('button', { name: /^Retry → routed\.v1/ }).click();
    await page.getByText('Published to routed.v1.').waitFor();
  });

  test('bytes that are no text, no value and a large value are shown as what they are', async (t) => {
    const binary = await storeOne('orders.v1', Buffer.from([0, 255, 65, 0xc3, 0x28]));
    const page = await openConsole(t, {
      browser,
      system,
      path: `/dlq/messages/${binary}?tab=payload`,
      expectedErrors: [/404/],
    });
    await page.getByText(/00 ff 41 c3 28/).waitFor();
    await page.getByLabel('As stored').check();
    await page.getByText(/not valid UTF-8, the first at 1/).waitFor();
    await page.goto(`${system.url}/dlq/messages/${await storeOne('orders.v1', null)}?tab=payload`);
    await page.getByText('No value (null)').waitFor();
    const large = await storeOne('orders.v1', Buffer.from(`"${'x'.repeat(400_000)}"`));
    await page.goto(`${system.url}/dlq/messages/${large}?tab=payload`);
    await page.getByText('The first 262 kB of 400 kB are shown.').waitFor();
  });

  test('what a producer wrote is text, wherever it is shown', async (t) => {
    const id = await storeOne(
      hostile.slice(0, 200),
      Buffer.from(JSON.stringify({ [hostile]: hostile })),
      hostile,
    );
    const page = await openConsole(t, { browser, system, path: `/dlq/messages/${id}` });
    await page.getByText('onerror=').first().waitFor();
    await page.keyboard.press('2');
    await page
      .getByText(/onerror=/)
      .first()
      .waitFor();
    await page.goto(`${system.url}/dlq/messages?peek=${id}`);
    await page.getByRole('complementary', { name: 'Preview' }).getByText('onerror=').first().waitFor();
    assert.notEqual(await page.title(), 'owned');
    assert.equal(await page.locator('img[src="x"]').count(), 0);
  });

  test('a failing server and an unknown message are errors, never an empty list', async (t) => {
    const page = await openConsole(t, {
      browser,
      system,
      path: '/dlq/messages/01900000-0000-7000-8000-000000000000',
      expectedErrors: [/404/, /500/],
    });
    await page.getByRole('alert').getByText('SYS_DLQ_NOT_FOUND').waitFor();
    const failure = { status: 500, json: { error: { code: 'SYS_DLQ_INTERNAL_ERROR', message: 'broken' } } };
    await page.route('**/api/v1/dlq/messages?**', (route) => route.fulfill(failure));
    await page.goto(`${system.url}/dlq/messages`);
    await page.getByRole('alert').getByText('SYS_DLQ_INTERNAL_ERROR').waitFor();
    assert.equal(await page.getByText('No dead letters are stored').count(), 0);
  });

  for (const theme of ['light', 'dark'] as const)
    test(`list and message are accessible: ${theme}`, async (t) => {
      const page = await openConsole(t, {
        browser,
        system,
        path: '/dlq/messages?q=status:DEAD',
        theme,
        language: theme === 'dark' ? 'ja' : 'en',
      });
      await page.locator('[data-row-link]').nth(2).focus();
      await page.keyboard.press(' ');
      await page.getByRole('complementary').locator('pre').nth(1).waitFor();
      await assertAccessible(page);
      await page.keyboard.press('Enter');
      await page.waitForURL(/messages\/[0-9a-f-]+$/);
      await page.locator('[aria-current="page"][aria-keyshortcuts="1"]').waitFor();
      for (const tab of ['1', '2', '3', '4']) {
        await page.keyboard.press(tab);
        await page.locator('[aria-current="page"][aria-keyshortcuts="' + tab + '"]').waitFor();
        await assertAccessible(page);
      }
    });
});

describeConsole('messages of a server that protects them', (browser) => {
  let system: ConsoleSystem;
  let id: string;
  before(async () => {
    const rules = [{ fields: ['**.password'], headers: ['authorization'], patterns: ['email'] }];
    system = await startGuardedConsole({ more: { protect: { rules } } });
    await storeFailures(system.db, { name: 'timeout', count: 2 });
    const value = '{"password": "hunter2", "big": 9007199254740993}';
    const headers = JSON.stringify([{ key: 'authorization', value: 'Basic aHVudGVyMg==' }]);
    const [row] = await system.db.query<{ id: string }>(sql`
      INSERT INTO dlq.dlq_messages (original_topic, error_message, source_topic, raw_value, payload, headers)
      VALUES ('orders.v1', 'no account of jane@example.com', 'orders.dlq', convert_to(${value}, 'UTF8'),
              ${value}::jsonb, ${headers}::jsonb)
      RETURNING id`);
    id = row?.id ?? '';
  });
  after(() => system.drop());

  const protectedParts = /jane@example\.com|hunter2|aHVudGVyMg/;

  test('payloads are not asked for, and every button says which right it needs', async (t) => {
    const page = await openConsole(t, { browser, system, as: 'sys_auditor', path: '/dlq/messages' });
    await page.locator('[data-row-link]').last().click();
    await page.getByRole('button', { name: /^Retry/, description: /dlq:messages:retry/ }).waitFor();
    await page.getByRole('button', { name: /^Delete/, description: /dlq:messages:delete/ }).waitFor();
    await page.getByRole('button', { name: /^Reveal/, description: /dlq:payloads:view/ }).waitFor();
    await page.keyboard.press('2');
    const payload = page.getByRole('region', { name: 'Payload' });
    await payload.getByText(/Needs the permission dlq:payloads:view/).waitFor();
  });

  test('protected parts are revealed with a reason by keyboard, until one leaves the page', async (t) => {
    const page = await openConsole(t, {
      browser,
      system,
      path: `/dlq/messages/${id}?tab=payload`,
      expectedErrors: [/403/],
    });
    await page.getByRole('button', { name: /^Edit/, description: /are protected/ }).waitFor();
    await page.getByText('"big": 9007199254740993').waitFor();
    await page.getByRole('button', { name: 'Download', description: /are protected/ }).waitFor();
    await page.keyboard.press('3');
    await page.getByText('All of it is protected by a rule.').waitFor();
    await page.keyboard.press('1');
    await page.locator('mark', { hasText: '[masked]' }).waitFor();
    assert.doesNotMatch((await page.textContent('body')) ?? '', protectedParts);
    await assertAccessible(page);
    await page.keyboard.press('v');
    const dialog = page.getByRole('alertdialog', { name: 'Reveal protected parts' });
    await dialog.getByLabel('Reason').fill('ticket 4711');
    await page.keyboard.press('Control+Enter');
    await page.getByText('no account of jane@example.com').waitFor();
    for (const [tab, text] of [
      ['2', '"password": "hunter2"'],
      ['3', 'Basic aHVudGVyMg=='],
    ] as const) {
      await page.keyboard.press(tab);
      await page.getByText(text).waitFor();
    }
    await assertAccessible(page);
    const acts = await system.db.query(sql`
      SELECT reason FROM audit.events WHERE action = 'dlq:payloads:view' AND resource = ${`dlq/messages/${id}`}`);
    assert.deepEqual(acts, [{ reason: 'ticket 4711' }]);
    await page.keyboard.press('v');
    await page.getByText('All of it is protected by a rule.').waitFor();
    await page.goto(`${system.url}/dlq/messages/${id}/edit`);
    await page
      .getByRole('alert')
      .getByText(/must not store their masks/)
      .waitFor();
    assert.doesNotMatch((await page.textContent('body')) ?? '', protectedParts);
  });
});
