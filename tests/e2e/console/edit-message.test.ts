import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { sql } from '../../../src/platform/postgres/sql.ts';
import { assertAccessible } from '../../support/console/assert-accessible.ts';
import { startConsoleSystem, type ConsoleSystem } from '../../support/console/console-system.ts';
import { describeConsole } from '../../support/console/console-tests.ts';
import { tabTo, retype } from '../../support/console/keyboard.ts';
import { openConsole } from '../../support/console/open-console.ts';
import { tryEdit } from '../../support/edits.ts';

describeConsole('editing a message', (browser) => {
  let system: ConsoleSystem;
  before(async () => {
    system = await startConsoleSystem({ kafka: 'local' });
    await system.broker?.createTopic('orders.v1', 1);
  });
  after(() => system.drop());

  async function storeOne(value: Buffer): Promise<string> {
    const [row] = await system.db.query<{ id: string }>(sql`
      INSERT INTO dlq.dlq_messages (original_topic, error_message, source_topic, message_key, raw_value)
      VALUES ('orders.v1', 'qty must be > 0', 'orders.v1.dlq', convert_to('C-17', 'UTF8'), ${value})
      RETURNING id`);
    return row?.id ?? '';
  }

  const original = '{\n  "big": 12345678901234567890,\n  "qty": 0\n}';

  test('shows what changes, keeps every other byte, and is retried as its new version', async (t) => {
    const id = await storeOne(Buffer.from(original));
    const page = await openConsole(t, { browser, system, path: `/dlq/messages/${id}` });
    await page.getByRole('button', { name: /^Edit/ }).waitFor();
    await page.keyboard.press('e');
    const value = page.getByLabel('Value', { exact: true });
    await retype(page, value, '{\n  "big": 12345678901234567890,\n  "qty":\n}');
    await page.getByText(/^Value: text, \d+ B$/).waitFor();
    await retype(page, value, original.replace('"qty": 0', '"qty": 1'));
    await page.locator('.cm-merge-a .cm-changedText').getByText('0', { exact: true }).waitFor();
    await page.locator('.cm-merge-b .cm-changedText').getByText('1', { exact: true }).waitFor();
    await page.getByText('Can be saved as version 1.').waitFor();
    await page.getByRole('button', { name: /^Save new version/ }).click();
    await page.getByText('A reason is required.').waitFor();
    await page.getByLabel('Reason', { exact: true }).fill('the shop sent 0');
    await page.keyboard.press('Control+Enter');
    await page.getByText('edited, version 1').waitFor();
    await page.getByText('"big": 12345678901234567890,').waitFor();
    await page.keyboard.press('r');
    await page.getByText('Published to orders.v1.').waitFor();
    const { body } = await system.api.get<{ value_text: string }>(`/api/v1/dlq/messages/${id}/versions/0`);
    assert.equal(body.value_text, original);
  });

  test('of two who edit at once the second keeps the draft, and is told', async (t) => {
    const id = await storeOne(Buffer.from(original));
    const path = `/dlq/messages/${id}/edit`;
    const page = await openConsole(t, { browser, system, path, expectedErrors: [/409|412/] });
    await retype(page, page.getByLabel('Value', { exact: true }), '{"qty": 2}');
    await page.getByLabel('Reason', { exact: true }).fill('mine');
    const { status } = await tryEdit(system.api, id, { value: '{"qty": 3}' });
    assert.equal(status, 200);
    await page
      .getByRole('alert')
      .getByText(/saved version 1 meanwhile/)
      .waitFor();
    await page.getByLabel('Value', { exact: true }).getByText('{"qty": 2}').waitFor();
    await page.getByRole('button', { name: 'Drop the draft and edit that version' }).click();
    await page.getByLabel('Value', { exact: true }).getByText('{"qty": 3}').waitFor();
  });

  test('leaving with changes asks first', async (t) => {
    const id = await storeOne(Buffer.from(original));
    const page = await openConsole(t, { browser, system, path: `/dlq/messages/${id}/edit` });
    await page.getByLabel('Key', { exact: true }).fill('C-18');
    const questions: string[] = [];
    page.once('dialog', (dialog) => {
      questions.push(dialog.message());
      void dialog.dismiss();
    });
    await page.getByRole('link', { name: 'Back to the message' }).click();
    assert.deepEqual(questions, ['Leave without saving the new version?']);
    assert.match(page.url(), /\/edit$/);
    page.once('dialog', (dialog) => void dialog.accept());
    await page.getByRole('link', { name: 'Back to the message' }).click();
    await page.getByRole('heading', { name: /^Message / }).waitFor();
  });

  test('bytes that are no text stay, and a null value is not an empty one', async (t) => {
    const binary = await storeOne(Buffer.from([0, 255, 0xc3, 0x28]));
    const page = await openConsole(t, { browser, system, path: `/dlq/messages/${binary}/edit` });
    await page.getByText('The value is not text.').waitFor();
    await page.goto(`${system.url}/dlq/messages/${await storeOne(Buffer.from('{}'))}/edit`);
    await page.getByLabel('Value is null').check();
    await page.getByText('the record deletes its key').waitFor();
    await page.getByLabel('Value is null').uncheck();
    assert.equal((await page.getByLabel('Value', { exact: true }).innerText()).trim(), '');
  });

  test('line ends stay as they are, a wrong place is marked, and Tab leaves the editor', async (t) => {
    const id = await storeOne(Buffer.from('{\r\n  "qty": 0\r\n}\r\n'));
    const page = await openConsole(t, { browser, system, path: `/dlq/messages/${id}/edit` });
    const value = page.getByLabel('Value', { exact: true });
    await tabTo(page, value);
    await page.keyboard.press('Control+Home');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.insertText('"n": 1');
    await page.locator('.cm-lintPoint-error').waitFor({ state: 'attached' });
    await page.keyboard.insertText(',');
    await page.getByText('Can be saved as version 1.').waitFor();
    await page.keyboard.press('Tab');
    await page.getByLabel('Value is null').and(page.locator(':focus')).waitFor();
    await page.getByLabel('Reason', { exact: true }).fill('a number');
    await page.keyboard.press('Control+Enter');
    await page.getByText('edited, version 1').waitFor();
    const { body } = await system.api.get<{ value_text: string }>(`/api/v1/dlq/messages/${id}/versions/1`);
    assert.equal(body.value_text, '{"n": 1,\r\n  "qty": 0\r\n}\r\n');
  });

  test('on a phone both texts are in one column', async (t) => {
    const id = await storeOne(Buffer.from(original));
    const viewport = { width: 320, height: 640 };
    const page = await openConsole(t, { browser, system, path: `/dlq/messages/${id}/edit`, viewport });
    await retype(page, page.getByLabel('Value', { exact: true }), original.replace('"qty": 0', '"qty": 1'));
    await page.locator('.cm-deletedChunk').getByText('"qty": 0').waitFor();
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), viewport.width);
    await assertAccessible(page);
  });

  for (const theme of ['light', 'dark'] as const)
    test(`is accessible: ${theme}`, async (t) => {
      const id = await storeOne(Buffer.from(original));
      const page = await openConsole(t, {
        browser,
        system,
        path: `/dlq/messages/${id}/edit`,
        theme,
        language: theme === 'dark' ? 'ja' : 'en',
      });
      await retype(page, page.getByLabel(theme === 'dark' ? '値' : 'Value', { exact: true }), '{}');
      await page.locator('.cm-merge-b .cm-changedLine').first().waitFor();
      await assertAccessible(page);
    });
});
