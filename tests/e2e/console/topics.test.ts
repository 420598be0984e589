import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from '../../../src/platform/postgres/sql.ts';
import { assertAccessible } from '../../support/console/assert-accessible.ts';
import { startGuardedConsole, type ConsoleSystem } from '../../support/console/console-system.ts';
import { describeConsole } from '../../support/console/console-tests.ts';
import { tabTo } from '../../support/console/keyboard.ts';
import { openConsole } from '../../support/console/open-console.ts';
import { storeFailures } from '../../support/console/store-failures.ts';

const hostile = '<img src=x onerror="document.title=\'owned\'">{{7*7}}';

describeConsole('topics', (browser) => {
  let system: ConsoleSystem;
  before(async () => {
    system = await startGuardedConsole({
      kafka: 'local',
      more: {
        roles: ['api', 'workers'],
        kafka: { dlq_topic_pattern: ['*.dlq'] },
        dlq: {
          auto_retry: [
            { name: 'timeouts', topics: ['orders.*'], delay: '1h', max_attempts: 2 },
            { name: 'everything', topics: ['*mail*'], delay: '2h' },
          ],
        },
      },
    });
  });
  after(() => system.drop());

  const storeSource = (topic: string, high: number, stored: number): Promise<unknown> =>
    system.db.query(sql`
      INSERT INTO dlq.source_partitions
        (cluster_id, topic, topic_id, partition, first_offset, next_offset, high_offset, log_end, stored)
      VALUES ('c', ${topic}, gen_random_uuid(), 0, 0, ${high}, ${high}, ${high + 5}, ${stored})`);

  test('before anything has failed it says what is read, or how topics are found', async (t) => {
    const page = await openConsole(t, { browser, system, path: '/dlq/topics' });
    await page.getByRole('heading', { name: 'No dead letter has been stored yet' }).waitFor();
    await page.getByText('kafka.dlq_topic_pattern').waitFor();
    await storeSource('orders.v1.dlq', 40, 40);
    await page.reload();
    await page.getByText('Dead-letter topics are being read; see below.').waitFor();
  });

  test('each topic has its counts, its route, its policy and its account', async (t) => {
    await storeFailures(system.db, { count: 7, name: 'a', topic: 'orders.v1' });
    await storeFailures(system.db, { count: 2, name: 'b', topic: 'in.mail', status: 'DEAD' });
    await storeSource('in.mail.dlq', 9, 7);
    const page = await openConsole(t, { browser, system, path: '/dlq/topics' });
    const orders = page.getByRole('row', { name: /^orders\.v1 / });
    await orders.getByText('7 PENDING').waitFor();
    await orders.getByText('the topic itself').waitFor();
    await orders.getByText('timeouts').waitFor();
    await orders.getByText('adds up', { exact: true }).waitFor();
    const mail = page.getByRole('row', { name: /^in\.mail / }).first();
    await mail.getByText('everything').waitFor();
    await mail.getByText('does not add up').waitFor();
    await page
      .getByRole('region', { name: 'Dead-letter topics' })
      .last()
      .getByText('orders.v1.dlq')
      .waitFor();
  });

  test('by keyboard alone: to a topic, its policy paused with a reason, and on to its messages', async (t) => {
    const page = await openConsole(t, { browser, system, path: '/dlq/topics' });
    await tabTo(page, page.getByRole('link', { name: 'orders.v1', exact: true }));
    await page.keyboard.press('Enter');
    await page.waitForURL(/\?topic=orders\.v1$/);
    await page.getByRole('heading', { name: 'Topic orders.v1', level: 1 }).waitFor();
    const partitions = page.getByRole('region', { name: 'Partitions' }).last();
    await partitions
      .getByRole('row', { name: /orders\.v1\.dlq \/ 0/ })
      .getByText('adds up')
      .waitFor();
    await tabTo(page, page.getByRole('button', { name: 'Pause policy timeouts' }));
    await page.keyboard.press('Enter');
    const dialog = page.getByRole('alertdialog', { name: 'Pause policy timeouts' });
    await dialog.getByRole('textbox', { name: 'Reason' }).focus();
    await page.keyboard.type('the partner is down');
    await page.keyboard.press('Control+Enter');
    await page.getByText(/by .*: the partner is down/).waitFor();
    await page.getByRole('button', { name: 'Resume policy timeouts' }).waitFor();
    await page.goto(`${system.url}/activity`);
    await page.getByRole('row', { name: /Paused policy timeouts the partner is down/ }).waitFor();
    await page.goBack();
    await tabTo(page, page.getByRole('link', { name: 'Show 7 messages' }));
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/dlq\/messages\?q=topic:orders\.v1$/);
    await page.getByText('7 of 7').waitFor();
  });

  test('what has no route says so, and leads to its messages', async (t) => {
    await system.db.query(sql`
      INSERT INTO dlq.dlq_messages (original_topic, error_message, source_topic, unroutable)
      SELECT 'lost.dlq', 'boom', 'lost.dlq', true FROM generate_series(1, 3)`);
    const page = await openConsole(t, { browser, system, path: '/dlq/topics?topic=lost.dlq' });
    await page.getByText('3 messages have no route').waitFor();
    await page.getByRole('link', { name: 'Show messages without a route' }).click();
    await page.getByText('3 of 3').waitFor();
  });

  test('a topic called like a page, a hostile one and an unknown one are topics', async (t) => {
    for (const topic of ['messages', hostile, 'x'.repeat(249)])
      await storeFailures(system.db, { count: 1, name: topic.slice(0, 8), topic });
    const page = await openConsole(t, { browser, system, path: '/dlq/topics?topic=messages' });
    await page.getByRole('heading', { name: 'Topic messages', level: 1 }).waitFor();
    await page.getByRole('link', { name: 'Show 1 message' }).waitFor();
    await page.goto(`${system.url}/dlq/topics`);
    await page.getByRole('link', { name: hostile }).click();
    await page.getByRole('link', { name: 'Show 1 message' }).waitFor();
    assert.notEqual(await page.title(), 'owned');
    await page.goto(`${system.url}/dlq/topics?topic=nothing-here`);
    await page.getByRole('heading', { name: 'This topic has no messages' }).waitFor();
  });

  test('a thousand topics: the first ones, and a search for the others', async (t) => {
    await system.db.query(sql`
      INSERT INTO dlq.dlq_messages (original_topic, error_message)
      SELECT 'bulk-' || n, 'boom' FROM generate_series(1, 1000) AS n`);
    const page = await openConsole(t, { browser, system, path: '/dlq/topics' });
    await page.getByText(/^500 of 1.00\d shown/).waitFor();
    await page.getByRole('searchbox', { name: 'Search topics' }).fill('bulk-99');
    await page.getByRole('link', { name: 'bulk-999' }).waitFor();
    assert.equal(await page.locator('[data-row-id]').count(), 11);
    await page.reload();
    await page.getByRole('link', { name: 'bulk-999' }).waitFor();
    await page.getByRole('searchbox', { name: 'Search topics' }).fill('no such topic');
    await page.getByText('No topic has a name like that.').waitFor();
  });

  test('who may only look sees every action, disabled, with the reason; a narrowed role its own topics', async (t) => {
    const path = '/dlq/topics?topic=orders.v1';
    const page = await openConsole(t, { browser, system, path, as: 'sys_auditor' });
    await page.getByRole('button', { name: /Plan redrive/, description: /dlq:redrives:plan/ }).waitFor();
    await page
      .getByRole('button', { name: /policy timeouts/, description: /dlq:redrives:(pause|start)/ })
      .waitFor();
    const narrow = await openConsole(t, { browser, system, path: '/dlq/topics', as: 'narrow_sys_operator' });
    await narrow.getByRole('link', { name: 'in.mail', exact: true }).waitFor();
    assert.equal(await narrow.locator('[data-row-id]').count(), 1);
    // Its patterns match more topics than the role may see.
    await narrow.getByText('by hand').waitFor();
    assert.equal(await narrow.getByText('everything').count(), 0);
  });

  test('a server in trouble is an error in each panel, never an empty list', async (t) => {
    const page = await openConsole(t, { browser, system, path: '/system', expectedErrors: [/500/] });
    await page.route(/\/api\/v1\/dlq/, (route) =>
      route.fulfill({ status: 500, json: { error: { code: 'SYS_DLQ_INTERNAL', message: 'broken' } } }),
    );
    await page.goto(`${system.url}/dlq/topics`);
    await page.getByRole('alert').getByText('SYS_DLQ_INTERNAL').nth(1).waitFor();
    assert.equal(await page.getByText('No dead letter has been stored yet').count(), 0);
    assert.equal(await page.getByText('adds up').count(), 0);
    await page.goto(`${system.url}/dlq/topics?topic=orders.v1`);
    await page.getByRole('alert').getByText('SYS_DLQ_INTERNAL').nth(1).waitFor();
    assert.equal(await page.getByText('This topic has no messages').count(), 0);
  });

  for (const [theme, language] of [
    ['light', 'en'],
    ['dark', 'ja'],
  ] as const)
    test(`is accessible, also on a phone: ${theme}, ${language}`, async (t) => {
      const page = await openConsole(t, { browser, system, path: '/dlq/topics?q=orders', theme, language });
      for (const path of ['?q=orders', '?topic=orders.v1', '?topic=lost.dlq']) {
        await page.setViewportSize({ width: 1440, height: 900 });
        await page.goto(`${system.url}/dlq/topics${path}`);
        await page
          .getByText(language === 'ja' ? '一致' : 'adds up')
          .first()
          .or(page.getByText('lost.dlq').first())
          .first()
          .waitFor();
        await assertAccessible(page);
        await page.setViewportSize({ width: 320, height: 800 });
        assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 320, path);
      }
    });
});
