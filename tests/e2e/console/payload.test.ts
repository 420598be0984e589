import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { sql } from '../../../src/platform/postgres/sql.ts';
import { assertAccessible } from '../../support/console/assert-accessible.ts';
import { startConsoleSystem, type ConsoleSystem } from '../../support/console/console-system.ts';
import { describeConsole } from '../../support/console/console-tests.ts';
import { tabTo } from '../../support/console/keyboard.ts';
import { openConsole } from '../../support/console/open-console.ts';

describeConsole('the payload of a message', (browser) => {
  let system: ConsoleSystem;
  before(async () => {
    system = await startConsoleSystem();
  });
  after(() => system.drop());

  async function storeOne(value: Buffer): Promise<string> {
    const [row] = await system.db.query<{ id: string }>(sql`
      INSERT INTO dlq.dlq_messages (original_topic, error_message, source_topic, raw_value)
      VALUES ('orders.v1', 'broken', 'orders.v1.dlq', ${value})
      RETURNING id`);
    return row?.id ?? '';
  }

  const lines = (page: Page) => page.locator('.cm-line');

  test('is found in and folded by keyboard alone, also what is far below the screen', async (t) => {
    const items = Array.from({ length: 2000 }, (_, n) => ({ n, name: `item ${n}` }));
    const id = await storeOne(Buffer.from(JSON.stringify({ customer: { id: 'C-17' }, items })));
    const page = await openConsole(t, { browser, system, path: `/dlq/messages/${id}?tab=payload` });
    await lines(page).getByText('"customer": {').waitFor();
    assert.equal(await lines(page).getByText('item 1999').count(), 0);
    await page.keyboard.press('Control+f');
    await page.getByRole('textbox', { name: 'Find' }).and(page.locator(':focus')).waitFor();
    await page.keyboard.type('item 1999');
    await page.keyboard.press('Enter');
    await page.locator('.cm-searchMatch-selected', { hasText: 'item 1999' }).waitFor();
    await assertAccessible(page);
    await page.keyboard.press('Escape');

    await tabTo(page, page.getByRole('button', { name: 'Fold', exact: true }));
    await page.keyboard.press('Enter');
    await page.keyboard.press('Tab');
    await page.keyboard.press('Tab');
    await page.getByRole('textbox', { name: 'Payload' }).and(page.locator(':focus')).waitFor();
    await page.keyboard.press('Control+Home');
    await page.locator('.cm-foldPlaceholder').nth(1).waitFor();
    assert.ok((await lines(page).count()) <= 4);
    await assertAccessible(page);
    await tabTo(page, page.getByRole('button', { name: 'Unfold' }));
    await page.keyboard.press('Enter');
    await lines(page).getByText('"id": "C-17"').waitFor();
  });

  test('of 5 MB shows its first 256 kB, says so, and all of it is downloaded', async (t) => {
    const value = Buffer.from(`{"text": "${'x'.repeat(5_000_000)}"}`);
    const id = await storeOne(value);
    const page = await openConsole(t, { browser, system, path: `/dlq/messages/${id}?tab=payload` });
    await page.getByText('The first 262 kB of 5.0 MB are shown.').waitFor();
    await page.locator('.cm-content').getByText('{"text": "xxx').waitFor();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('link', { name: /^Download/ }).click(),
    ]);
    let size = 0;
    for await (const chunk of await download.createReadStream()) size += (chunk as Buffer).length;
    assert.equal(size, value.length);
  });

  test('marks bytes that are no UTF-8 where they stand, and says how many and where', async (t) => {
    const id = await storeOne(
      Buffer.concat([Buffer.from('{"name": "J'), Buffer.from([0xf6, 0x72]), Buffer.from('g"}')]),
    );
    const page = await openConsole(t, { browser, system, path: `/dlq/messages/${id}?tab=payload` });
    await page.getByLabel('As stored').check();
    await page.getByText('One byte is not valid UTF-8, at 11.').waitFor();
    await page.locator('mark', { hasText: '⟨f6⟩' }).waitFor();
    await page.getByLabel('Hex').check();
    await page.getByText(/4a f6 72 67/).waitFor();
  });

  test('is copied as it is shown', async (t) => {
    const id = await storeOne(Buffer.from('{"big":12345678901234567890}'));
    const page = await openConsole(t, { browser, system, path: `/dlq/messages/${id}?tab=payload` });
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page.getByRole('button', { name: 'Copy Payload' }).click();
    const copied = await page.evaluate<string>('navigator.clipboard.readText()');
    assert.equal(copied, '{\n  "big": 12345678901234567890\n}');
  });
});
