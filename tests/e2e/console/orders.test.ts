import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { sql } from '../../../src/platform/postgres/sql.ts';
import { assertAccessible } from '../../support/console/assert-accessible.ts';
import { consoleOf, startGuardedConsole, type ConsoleSystem } from '../../support/console/console-system.ts';
import { describeConsole } from '../../support/console/console-tests.ts';
import { retype } from '../../support/console/keyboard.ts';
import { openConsole } from '../../support/console/open-console.ts';
import { startOutboxSystem, storedOrder, type OutboxSystem } from '../../support/outbox-system.ts';
import type { PartnerAct } from '../../support/partner.ts';

const refusal: PartnerAct = { act: 'status', status: 400, effect: false };
const lostAnswer: PartnerAct = { act: 'reset', when: 'before_answer' };
const hostile = '<img src=x onerror="document.title=\'owned\'">'.repeat(40);

describeConsole('orders', (browser) => {
  let outbox: OutboxSystem;
  let system: ConsoleSystem;
  before(async () => {
    outbox = await startOutboxSystem({
      broker: { idempotency: 'none' },
      destinations: () => ({
        closed: { url: 'http://127.0.0.1:1/orders', max_in_flight: 4 },
        // Nobody answers the question.
        asking: { idempotency: 'none', status_url: 'http://127.0.0.1:1/{key}' },
      }),
    });
    system = await consoleOf(outbox.system);
  });
  after(async () => {
    await outbox.drop();
  });

  /** A dead order that blocks others of its ordering key. */
  async function blockedLane(lane: string, behind: number): Promise<readonly bigint[]> {
    const head = await outbox.order({
      ordering_key: lane,
      does: [refusal],
      request: { symbol: 'EURX', qty: 0 },
    });
    await outbox.becomes(head, 'dead');
    const others: bigint[] = [];
    for (let i = 0; i < behind; i += 1) others.push(await outbox.order({ ordering_key: lane }));
    return [head, ...others];
  }

  const open = (t: Parameters<typeof openConsole>[0], path: string, more: object = {}): Promise<Page> =>
    openConsole(t, { browser, system, path, ...more });

  test('a blocked ordering key: superseded with a new key, linked both ways, and the others go on', async (t) => {
    const [head = 0n, second = 0n, third = 0n] = await blockedLane('account-7', 2);
    const page = await open(t, `/outbox/orders/${head}`);
    await page.getByRole('region', { name: '2 orders wait behind this one' }).waitFor();
    await page.getByRole('region', { name: 'It needs a decision' }).waitFor();
    await page.keyboard.press('e');
    await page.getByRole('heading', { name: `Supersede order ${head}` }).waitFor();
    await page.getByText('Nothing is changed').waitFor();
    const request = page.getByLabel('Corrected request');
    await retype(page, request, '{"symbol": "EURUSD", "qty": 10000.10,}');
    await page.getByText(/Not valid JSON: line 1/).waitFor();
    await retype(page, request, '{"symbol": "EURUSD", "qty": 10000.10}');
    await page.locator('.cm-merge-b .cm-changedLine').getByText('{"symbol": "EURUSD"').waitFor();
    await page.keyboard.press('Control+Enter');
    await page.getByText('A reason is required.').waitFor();
    await page.getByLabel('Reason').fill('the symbol was wrong');
    await page.keyboard.press('Control+Enter');
    await page.getByText(/^Superseded by order \d+\.$/).waitFor();
    await page.getByText('Supersedes', { exact: true }).waitFor();
    const [correction] = await system.db.query<{ id: bigint; request: string }>(sql`
      SELECT id, request_json::text AS request FROM outbox.outbox_orders WHERE supersedes_id = ${head}`);
    assert.match(correction?.request ?? '', /10000\.1\b/);
    await page.getByRole('heading', { name: `Order ${correction?.id}` }).waitFor();
    await outbox.become([correction?.id ?? 0n, second, third], 'sent');
    await page.getByRole('link', { name: String(head), exact: true }).click();
    await page.getByText('superseded').first().waitFor();
    await page.getByRole('link', { name: String(correction?.id), exact: true }).waitFor();
    await page.getByRole('button', { name: /^Skip/, description: 'It is already superseded.' }).waitFor();
    await page.keyboard.press('4');
    await page.getByText('superseded: the symbol was wrong').waitFor();
  });

  test('one in doubt says so, proves nothing, and is skipped only after the destination was checked', async (t) => {
    const id = await outbox.order({ does: [lostAnswer] });
    await outbox.becomes(id, 'dead');
    const page = await open(t, '/outbox/orders?q=is:in_doubt', { theme: 'dark' });
    await page.getByRole('row').getByText('in doubt').first().waitFor();
    await page.goto(`${system.url}/outbox/orders/${id}`);
    const notice = page.getByRole('region', { name: /In doubt/ });
    await notice.getByText(/broker has no status URL/).waitFor();
    const asked = await outbox.order({ destination: 'asking', does: [lostAnswer] });
    await outbox.becomes(asked, 'dead');
    await page.goto(`${system.url}/outbox/orders/${asked}`);
    await notice.getByText(/Redrive has asked it, without a clear answer/).waitFor();
    await page.goto(`${system.url}/outbox/orders/${id}`);
    await notice.waitFor();
    await page.keyboard.press('3');
    await page.getByText('Ended, its effect is in doubt').waitFor();
    await page.getByRole('button', { name: /^Skip/ }).click();
    const dialog = page.getByRole('alertdialog');
    await dialog
      .getByRole('button', { name: /^Cancel/ })
      .and(page.locator(':focus'))
      .waitFor();
    await dialog.getByLabel('Reason').fill('the desk has it in its book');
    await dialog.getByRole('button', { name: /^Skip/, description: /I have checked/ }).waitFor();
    await dialog.getByLabel(/I have checked the destination/).check();
    await page.keyboard.press('Control+Enter');
    await page.getByText('Skipped.', { exact: true }).waitFor();
    assert.equal((await storedOrder(system.db, id)).resolution, 'skipped');
  });

  test('whoever comes second sees why, and the new state', async (t) => {
    const id = await outbox.order({ does: [refusal] });
    await outbox.becomes(id, 'dead');
    const page = await open(t, `/outbox/orders/${id}`, { expectedErrors: [/409/] });
    await page.getByRole('button', { name: /^Skip/ }).click();
    const dialog = page.getByRole('alertdialog');
    await dialog.getByLabel('Reason').fill('not needed');
    await system.api.post(`/api/v1/outbox/orders/${id}/skip`, { reason: 'first' });
    await dialog.getByRole('button', { name: /^Skip/ }).click();
    await dialog
      .getByRole('alert')
      .getByText(/resolution=skipped/)
      .waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: /^Skip/, description: 'It is already skipped.' }).waitFor();
  });

  test('are filtered, previewed and opened by keyboard alone, and the way back leads to the list', async (t) => {
    const [head = 0n] = await blockedLane('account-8', 1);
    const page = await open(t, '/outbox/orders');
    await page
      .getByRole('link', { name: /^e2e-order-/ })
      .first()
      .waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('lane:account-8 status:dead');
    await page.keyboard.press('Enter');
    await page.getByText('1 of 1').waitFor();
    await page.locator('[data-row-link]').first().focus();
    await page.keyboard.press(' ');
    const pane = page.getByRole('complementary', { name: 'Preview' });
    await pane.getByText('1 order waits behind this one').waitFor();
    await pane.getByText('"symbol": "EURX"').waitFor();
    await page.keyboard.press('Escape');
    await pane.waitFor({ state: 'detached' });
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: `Order ${head}` }).waitFor();
    for (const [key, text] of [
      ['2', '"symbol": "EURX"'],
      ['3', 'Ended without an effect'],
      ['4', 'queued → sending'],
      ['1', /HTTP 400/],
    ] as const) {
      await page.keyboard.press(key);
      await page.locator('main').getByText(text).first().waitFor();
    }
    await page.getByRole('link', { name: '1 of 1' }).click();
    assert.match(page.url(), /q=lane:account-8/);
  });

  test('a list is kept up to date in place, and new orders only feed the pill', async (t) => {
    const [head = 0n] = await blockedLane('account-live', 0);
    const page = await open(t, '/outbox/orders?q=lane:account-live');
    await page.getByText('1 of 1').waitFor();
    await system.api.post(`/api/v1/outbox/orders/${head}/skip`, { reason: 'not needed' });
    await page.getByRole('row').getByText('skipped').waitFor();
    await outbox.order({ ordering_key: 'account-live' });
    await page.getByRole('button', { name: /1 new/ }).click();
    await page.getByText('2 of 2').waitFor();
  });

  test('a destination that is away has an open circuit, and its orders say so', async (t) => {
    for (let i = 0; i < 5; i += 1) await outbox.order({ destination: 'closed' });
    const page = await open(t, '/outbox/destinations');
    const row = page.getByRole('row', { name: 'Orders to closed' });
    await row.getByText(/^(open|half-open)$/).waitFor();
    await row.getByText(/NETWORK_TIMEOUT/).waitFor();
    await row.getByRole('meter', { name: 'In flight' }).waitFor();
    await row.getByRole('link', { name: '5', exact: true }).click();
    await page.getByText('5 of 5').waitFor();
    await page.locator('[data-row-link]').first().click();
    await page.getByRole('region', { name: /The circuit of closed is open/ }).waitFor();
    await page.getByRole('button', { name: /^Cancel order/ }).click();
    await page.getByRole('alertdialog').getByLabel('Reason').fill('placed by phone');
    await page.keyboard.press('Control+Enter');
    await page.getByText('cancelled').first().waitFor();
  });

  test('the ledger proves one effect, also from the archive, and says when there is none', async (t) => {
    const id = await outbox.order({ idempotency_key: 'proof-of-one' });
    const row = await outbox.becomes(id, 'sent');
    const page = await open(t, '/outbox/ledger', { expectedErrors: [/404/] });
    await page.getByLabel('Idempotency key').fill('short');
    await page.keyboard.press('Enter');
    await page
      .getByRole('alert')
      .getByText(/8 to 64 visible/)
      .waitFor();
    await page.getByLabel('Idempotency key').fill('proof-of-one');
    await page.keyboard.press('Enter');
    await page.getByText('it took effect once').waitFor();
    await page
      .getByText(row.response?.broker_order_id ?? '')
      .first()
      .waitFor();
    await page.goto(`${system.url}/outbox/ledger?key=nobody-has-it`);
    await page.getByText('No order was ever accepted under nobody-has-it').waitFor();
    await system.db.query(sql`
      WITH gone AS (DELETE FROM outbox.idempo_ledger WHERE idempotency_key = 'proof-of-one' RETURNING *)
      INSERT INTO outbox.idempo_ledger_archive SELECT gone.*, now() FROM gone`);
    await page.goto(`${system.url}/outbox/ledger?key=proof-of-one`);
    await page.getByText('It is in the archive: the key can be used again.').waitFor();
  });

  test('what callers and destinations wrote is text, and long texts break nothing', async (t) => {
    const id = await outbox.order({
      ordering_key: hostile.slice(0, 250),
      request: { [hostile]: hostile.repeat(20) },
      does: [{ act: 'status', status: 400, effect: false, body: hostile }],
    });
    await outbox.becomes(id, 'dead');
    for (const viewport of [
      { width: 1440, height: 900 },
      { width: 390, height: 844 },
    ]) {
      const page = await open(t, `/outbox/orders?peek=${id}`, { viewport, language: 'ja' });
      await page.getByRole('complementary').getByText('onerror=').first().waitFor();
      await page.goto(`${system.url}/outbox/orders/${id}?tab=request`);
      await page.locator('main').getByText('onerror=').first().waitFor();
      const isWider = await page.evaluate<boolean>('document.documentElement.scrollWidth > innerWidth');
      assert.equal(isWider, false, `the page is not wider than ${viewport.width} px`);
      assert.notEqual(await page.title(), 'owned');
      assert.equal(await page.locator('img[src="x"]').count(), 0);
    }
  });

  test('a failing server and an unknown order are errors, never an empty list', async (t) => {
    const page = await open(t, '/outbox/orders/999999', { expectedErrors: [/404/, /500/] });
    await page.getByRole('alert').getByText('SYS_OUTBOX_NOT_FOUND').waitFor();
    const failure = { status: 500, json: { error: { code: 'SYS_OUTBOX_INTERNAL', message: 'broken' } } };
    await page.route('**/api/v1/outbox/**', (route) => route.fulfill(failure));
    for (const path of ['orders', 'destinations', 'ledger?key=proof-of-one']) {
      await page.goto(`${system.url}/outbox/${path}`);
      await page.getByRole('alert').getByText('SYS_OUTBOX_INTERNAL').waitFor();
    }
    for (const calm of ['No orders are stored', 'No destinations', 'No order was ever accepted'])
      assert.equal(await page.getByText(calm).count(), 0);
  });

  for (const theme of ['light', 'dark'] as const)
    test(`the screens are accessible: ${theme}`, async (t) => {
      const [head = 0n] = await blockedLane(`account-${theme}`, 1);
      const language = theme === 'dark' ? 'ja' : 'en';
      const page = await open(t, `/outbox/orders?q=lane:account-${theme}&peek=${head}`, { theme, language });
      await page.getByRole('complementary').locator('.cm-content').first().waitFor();
      await assertAccessible(page);
      for (const tab of ['attempts', 'request', 'proof', 'history']) {
        await page.goto(`${system.url}/outbox/orders/${head}?tab=${tab}`);
        await page.locator(`[aria-labelledby="${tab}"] h2`).waitFor();
        await page.locator('[aria-busy="true"]').first().waitFor({ state: 'detached' });
        await assertAccessible(page);
      }
      await page.goto(`${system.url}/outbox/orders/${head}/supersede`);
      await page.locator('textarea').first().waitFor();
      await assertAccessible(page);
      await page.goto(`${system.url}/outbox/destinations?name=desk`);
      await page.getByRole('row').nth(3).waitFor();
      await assertAccessible(page);
    });
});

describeConsole('protected orders', (browser) => {
  let system: ConsoleSystem;
  before(async () => {
    const rules = [{ destinations: ['*'], fields: ['/account'], patterns: [], action: 'mask' }];
    system = await startGuardedConsole({ more: { protect: { rules } } });
    await system.db.query(sql`
      INSERT INTO outbox.outbox_orders (idempotency_key, request_json, request_digest, status, destination, next_attempt_at)
      VALUES ('protected-1', '{"account": "DE-1234", "n": 9007199254740993}', 'sha256:x', 'dead', 'broker', now())`);
  });
  after(() => system.drop());

  test('show masks until they are revealed with a reason; a request with masks is not corrected', async (t) => {
    const page = await openConsole(t, { browser, system, path: '/outbox/orders' });
    await page.getByRole('link', { name: 'protected-1' }).click();
    await page.getByRole('button', { name: /^Supersede/, description: /protected parts/ }).waitFor();
    await page.keyboard.press('2');
    await page.getByText('"[masked]"').waitFor();
    await page.keyboard.press('v');
    const dialog = page.getByRole('alertdialog');
    await dialog.getByLabel('Reason').fill('the customer called');
    await page.keyboard.press('Control+Enter');
    await page.getByText('"account": "DE-1234"').waitFor();
    await page.getByText('"n": 9007199254740993').waitFor();
    await page.keyboard.press('v');
    await page.getByText('"[masked]"').waitFor();
    assert.equal(await page.getByText('DE-1234').count(), 0);
  });
});

describeConsole('orders of others', (browser) => {
  let system: ConsoleSystem;
  before(async () => {
    system = await startGuardedConsole();
  });
  after(() => system.drop());

  test('an auditor sees everything and can decide nothing; without orders the list says how they come', async (t) => {
    const page = await openConsole(t, { browser, system, path: '/outbox/orders', as: 'sys_auditor' });
    await page.getByText('No orders are stored').waitFor();
    await system.db.query(sql`
      INSERT INTO outbox.outbox_orders (idempotency_key, request_json, request_digest, status, destination, next_attempt_at)
      VALUES ('read-only-1', '{"n": 1}', 'sha256:x', 'dead', 'broker', now())`);
    await page.goto(`${system.url}/outbox/orders`);
    await page.getByRole('link', { name: 'read-only-1' }).click();
    for (const verb of ['Supersede', 'Skip'])
      await page
        .getByRole('button', { name: new RegExp(`^${verb}`), description: /outbox:orders:(supersede|skip)/ })
        .waitFor();
    await page.keyboard.press('e');
    await page.getByRole('button', { name: /^Skip/ }).click({ force: true });
    assert.equal(await page.getByRole('alertdialog').count(), 0);
    assert.match(page.url(), /\/orders\/\d+$/);
  });
});
