import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { startConsoleSystem, type ConsoleSystem } from '../../support/console/console-system.ts';
import { describeConsole } from '../../support/console/console-tests.ts';
import { moveToRow, tabTo, typeInto } from '../../support/console/keyboard.ts';
import { openConsole } from '../../support/console/open-console.ts';
import { eventually } from '../../support/eventually.ts';
import { startTestConsumer, type TestConsumer } from '../../support/test-consumer.ts';

/**
 * A night of an operator: a gateway does not answer, 1 199 messages fail because of it, and one because it is wrong.
 * From the first look to the last receipt without a mouse.
 */
const failures = 1200;

describeConsole('an incident of 1 200 failures', (browser) => {
  let system: ConsoleSystem;
  let consumer: TestConsumer;
  let isFixed = false;
  const processed = new Set<string>();

  before(async () => {
    system = await startConsoleSystem({ kafka: 'local' });
    const { broker } = system;
    assert.ok(broker !== null);
    for (const topic of ['orders.v1', 'orders.v1.dlq']) await broker.createTopic(topic, 1);
    consumer = startTestConsumer(broker, {
      topic: 'orders.v1',
      deadLetterTopic: 'orders.v1.dlq',
      group: 'billing',
      judge: ({ headers, value }) => {
        const { id, qty } = JSON.parse(String(value)) as Readonly<{ id: number; qty: number }>;
        const error = qty === 0 ? 'qty must be > 0' : 'payment-gateway did not answer within 2 s';
        if (qty > 0 && isFixed) processed.add(String(id));
        return qty > 0 && isFixed
          ? null
          : { headers: [...headers, { key: Buffer.from('error'), value: Buffer.from(error) }] };
      },
    });
  });
  after(async () => {
    await consumer.stop();
    await system.drop();
  });

  async function fail(): Promise<void> {
    const records = Array.from({ length: failures }, (_, id) => ({
      topic: 'orders.v1',
      key: Buffer.from(`customer-${id}`),
      value: Buffer.from(JSON.stringify({ id, qty: id === 700 ? 0 : 1 })),
      headers: [],
    }));
    for (const sent of await system.broker!.publish(records, { timeoutMs: 10_000 }))
      assert.equal(sent.result, 'acked');
  }

  const press = async (page: Page, ...keys: readonly string[]): Promise<void> => {
    for (const key of keys) await page.keyboard.press(key);
  };

  const goToGroups = async (page: Page): Promise<void> => {
    await tabTo(page, page.getByRole('link', { name: 'Dead letters' }).first());
    await press(page, 'Enter');
  };

  /** Fills the form of a plan, makes it, and starts it. */
  async function redrive(page: Page, count: string, canary: string): Promise<void> {
    await typeInto(page, page.getByLabel('Messages per second', { exact: true }), '');
    await typeInto(page, page.getByLabel('Stages', { exact: true }), canary);
    await typeInto(page, page.getByLabel('Watch for (seconds)', { exact: true }), '1');
    await typeInto(page, page.getByLabel('Reason', { exact: true }), 'the gateway answers again');
    await press(page, 'Control+Enter');
    await page.getByText(`${count} go + 0 excluded = ${count} that match`).waitFor();
    await press(page, 'Control+Enter');
    const dialog = page.getByRole('alertdialog');
    await dialog.getByText('Consumers will process them again.').waitFor();
    await dialog.locator(':focus').waitFor();
    await press(page, 'Control+Enter');
  }

  test('is understood, repaired and redriven by keyboard alone', async (t) => {
    const page = await openConsole(t, { browser, system, path: '/dlq/groups' });
    await page.getByText('No failures are stored').waitFor();
    await fail();

    // They arrive by themselves, as two causes.
    await page.getByRole('row', { name: /payment-gateway did not answer.*1\s199 PENDING/ }).waitFor();

    // The one that no retry can help is edited, and retried.
    await moveToRow(page, /qty must be/);
    await press(page, 'Enter');
    await tabTo(page, page.getByRole('link', { name: '1 message' }));
    await press(page, 'Enter');
    await moveToRow(page, /qty must be/);
    await press(page, 'e');
    await typeInto(page, page.getByLabel('Value', { exact: true }), '{"id":700,"qty":1}');
    await typeInto(page, page.getByLabel('Reason', { exact: true }), 'the shop sent 0');
    await press(page, 'Control+Enter');
    await page.getByText('edited, version 1').waitFor();

    // The others are redriven too early: the canary stops after 25.
    await goToGroups(page);
    await moveToRow(page, /payment-gateway/);
    await press(page, 'r');
    await redrive(page, '1\u202f199', '25');
    const stopped = page.getByRole('region', { name: 'The redrive has stopped' });
    await stopped.waitFor();
    assert.equal(processed.size, 0);

    isFixed = true;
    await tabTo(page, stopped.getByRole('button', { name: 'Continue anyway…' }));
    await press(page, 'Enter');
    const dialog = page.getByRole('alertdialog');
    await typeInto(page, dialog.getByLabel('Reason'), 'deploy 4411 has fixed it');
    await press(page, 'Control+Enter');
    await page.getByText(/^1\s174 published \+ 25 came back = 1\s199 selected$/).waitFor();

    // Those of the canary came back, and wait in the same group. The edited one goes with them.
    await goToGroups(page);
    await moveToRow(page, /payment-gateway/);
    await press(page, 'r');
    await redrive(page, '25', '5');
    await page.getByText(/^25 published = 25 selected$/).waitFor();
    await goToGroups(page);
    await moveToRow(page, /qty must be/);
    await press(page, 'r');
    await redrive(page, '1', '1');
    await page.getByText(/^1 published = 1 selected$/).waitFor();

    await eventually(() => assert.equal(processed.size, failures));
    assert.equal(consumer.seen.length, failures + 25 + failures, 'no message was sent twice');
  });
});
