import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { startConsoleSystem, type ConsoleSystem } from '../../support/console/console-system.ts';
import { describeConsole } from '../../support/console/console-tests.ts';
import { openConsole } from '../../support/console/open-console.ts';
import { storeFailures } from '../../support/console/store-failures.ts';

describeConsole('live lists', (browser) => {
  let system: ConsoleSystem;
  before(async () => (system = await startConsoleSystem({ kafka: 'local' })));
  after(() => system.drop());

  test('the first five minutes: a dead letter arrives, is retried and is seen to be resolved', async (t) => {
    const { broker } = system;
    assert.ok(broker !== null);
    await broker.createTopic('orders.v1', 1);
    await storeFailures(system.db, { name: 'before', count: 3, topic: 'orders.v1' });
    const page = await openConsole(t, { browser, system, path: '/dlq/messages' });
    await page.getByRole('button', { name: /^Live/ }).waitFor();
    await page
      .getByRole('link', { name: /before/ })
      .first()
      .waitFor();
    await storeFailures(system.db, { name: 'first', count: 1, topic: 'orders.v1' });
    await page.getByRole('button', { name: '1 new' }).click();
    await page.getByRole('link', { name: /first/ }).click();
    await page.getByRole('button', { name: /^Retry → orders.v1/ }).waitFor();
    await page.keyboard.press('r');
    await page.getByText('RESOLVED', { exact: true }).first().waitFor();
  });
});
