import assert from 'node:assert/strict';
import { after, before, beforeEach, test, type TestContext } from 'node:test';
import type { Page } from 'playwright-core';
import { sql } from '../../../src/platform/postgres/sql.ts';
import { eventually } from '../../support/eventually.ts';
import type { ParticipantScript } from '../../support/saga-participant.ts';
import { step } from '../../support/saga-system.ts';
import { assertAccessible } from '../../support/console/assert-accessible.ts';
import { startGuardedConsole, type ConsoleSystem } from '../../support/console/console-system.ts';
import { describeConsole } from '../../support/console/console-tests.ts';
import { openConsole, type OpenOptions } from '../../support/console/open-console.ts';
import { startSagaConsole, type SagaConsole } from '../../support/console/saga-console.ts';

const hostile = '<img src=x onerror="document.title=\'owned\'">{{7*7}}';

/** The charge may have been made, and cannot be paid back. */
const cannotPayBack: ParticipantScript = ({ what }) => {
  if (what === 'charge') return { status: 503, body: { error: 'no capacity' } };
  return what === 'undo charge' ? { status: 422, body: { error: hostile } } : undefined;
};

describeConsole('sagas', (browser) => {
  let console: SagaConsole;
  let at: SagaConsole['at'];
  before(async () => {
    console = await startSagaConsole();
    ({ at } = console);
  });
  after(() => console.drop());
  beforeEach(() => at.shop.setScript(() => undefined));

  const open = (t: TestContext, path: string, more: Partial<OpenOptions> = {}): Promise<Page> =>
    openConsole(t, { browser, system: console.system, path, ...more });
  const start = (more: Readonly<Record<string, unknown>> = {}): Promise<string> =>
    at.start(console.workflow, more);
  async function startStuck(): Promise<string> {
    at.shop.setScript(cannotPayBack);
    const id = await start();
    await at.waitsForPerson(id);
    return id;
  }

  test('one is followed forward, back, until it is stuck and retried, without a reload', async (t) => {
    let release = (): void => {};
    const released = new Promise<void>((resolve) => (release = resolve));
    at.shop.setScript(async (call) => {
      if (call.what === 'charge') await released;
      return cannotPayBack(call);
    });
    const id = await start();
    const page = await open(t, `/sagas/${id}`);
    await page.getByText('1 of 3 steps done; charge is being called.').waitFor();
    await page.getByRole('radio', { name: '2: charge, attempt 1, maybe called, …' }).waitFor();
    release();
    await page.getByText(/^1 of 3 steps undone.*charge may have taken effect; the undo of charge/).waitFor();
    await page.getByText(/^turned back \d\d:/).waitFor();
    await page.getByRole('radio', { name: /^4: undo charge, attempt 1, refused/ }).waitFor();
    assert.notEqual(await page.title(), 'owned');
    assert.equal(await page.locator('img[src="x"]').count(), 0);
    at.shop.setScript(() => undefined);
    await page.keyboard.press('r');
    const dialog = page.getByRole('alertdialog', { name: 'Retry undo charge' });
    await dialog.getByText('Calls undo charge again with the same idempotency key').waitFor();
    await dialog.getByLabel('Reason').fill('the card is open again');
    await page.keyboard.press('Control+Enter');
    await page.getByText('Everything that was started is undone; nobody is needed.').waitFor();
    await page.getByText('FAILED', { exact: true }).waitFor();
    const row = page.getByRole('row').filter({ hasText: 'the card is open again' });
    await row.getByText('refused').waitFor();
  });

  test('a stuck undo is skipped with a reason, as soon as no call can arrive any more', async (t) => {
    const id = await startStuck();
    const page = await open(t, `/sagas/${id}`, { expectedErrors: [/409/] });
    await page.getByText('Whatever charge has done, stays.').waitFor();
    await page.getByRole('button', { name: 'Skip undo charge…' }).click();
    const dialog = page.getByRole('alertdialog', { name: 'Skip undo charge' });
    await dialog.getByText('This cannot be taken back.').waitFor();
    await dialog.getByRole('button', { name: 'Skip undo charge', description: /required/ }).waitFor();
    assert.match(await page.locator(':focus').innerText(), /^Cancel/);
    await dialog.getByLabel('Reason').fill('paid back in cash');
    await page.keyboard.press('Control+Enter');
    await dialog
      .getByRole('alert')
      .getByText(/may still arrive: wait until none can\. The saga is COMPENSATING now\./)
      .waitFor();
    await at.age(id);
    await page.keyboard.press('Control+Enter');
    await page.getByText('Everything that was started is undone, some of it by hand').waitFor();
    await page.getByRole('row').filter({ hasText: 'paid back in cash' }).getByText('skipped').waitFor();
  });

  test('a step in doubt is resolved with the answer that it would have got', async (t) => {
    const workflow = await at.register([
      step('book', { compensate: undefined }),
      step('mail', { input: { seat: '${steps.book.seat}' } }),
    ]);
    at.shop.setScript(({ what }) => (what === 'book' ? { status: 503 } : undefined));
    const id = await at.start(workflow);
    await at.waitsForPerson(id);
    await at.age(id);
    const page = await open(t, `/sagas/${id}`, { expectedErrors: [/422/, /400/] });
    await page.getByText(/0 of 2 steps done; book may have taken effect; book failed 2 times/).waitFor();
    await page.getByRole('button', { name: 'It happened…' }).click();
    const dialog = page.getByRole('alertdialog', { name: 'It happened' });
    await dialog.getByLabel('Reason').fill('seen in their books');
    await page.keyboard.press('Control+Enter');
    await dialog
      .getByRole('alert')
      .getByText(/its answer is needed by mail/)
      .waitFor();
    await dialog.getByLabel('Answer of the step').fill('{"seat": ');
    await page.keyboard.press('Control+Enter');
    await dialog.getByRole('alert').getByText('The answer is not valid JSON.').waitFor();
    await dialog.getByLabel('Answer of the step').fill('{"seat": 9223372036854775808}');
    await page.keyboard.press('Control+Enter');
    await dialog
      .getByRole('alert')
      .getByText(/output\.seat must be a number that a double holds exactly/)
      .waitFor();
    await dialog.getByLabel('Answer of the step').fill('{"seat": "12A"}');
    await page.keyboard.press('Control+Enter');
    await page.getByText('All 2 steps are done.').waitFor();
    await page.getByRole('radio', { name: /^4: mail/ }).click();
    const sent = page.getByRole('region', { name: 'Sent' });
    await sent.getByText('"seat": "12A"').waitFor();
    await page.getByRole('cell', { name: `${id}:mail:action` }).waitFor();
  });

  test('whoever comes second sees why, and the new status', async (t) => {
    const id = await startStuck();
    const page = await open(t, `/sagas/${id}`, { expectedErrors: [/409/] });
    await page.getByRole('button', { name: /^Retry undo charge/ }).click();
    const dialog = page.getByRole('alertdialog');
    await dialog.getByLabel('Reason').fill('me too');
    at.shop.setScript(() => undefined);
    const retry = `/api/v1/sagas/${id}/steps/charge/retry`;
    assert.equal((await at.system.api.post(retry, { reason: 'first' })).status, 200);
    await at.becomes(id, 'FAILED');
    await dialog.getByRole('button', { name: /^Retry undo charge/ }).click();
    await dialog
      .getByRole('alert')
      .getByText(/The saga is FAILED now\.$/)
      .waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: /^Retry step/, description: /that is stuck/ }).waitFor();
    await page.getByRole('button', { name: /^Cancel/, description: 'It has ended as FAILED.' }).waitFor();
  });

  test('are filtered, previewed, opened and looked through by keyboard alone', async (t) => {
    const id = await startStuck();
    const correlated = await start({ correlation_id: 'order-4711' });
    await at.waitsForPerson(correlated);
    const page = await open(t, '/sagas');
    await page.getByText('order-4711').waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('is:stuck step:charge');
    await page.keyboard.press('Enter');
    await page.waitForURL(/q=is:stuck/);
    await page.locator(`[data-row-id="${correlated}"] [data-row-link]`).focus();
    await page.keyboard.press(' ');
    const pane = page.getByRole('complementary', { name: 'Preview' });
    await pane.getByText('order-4711').waitFor();
    await page.keyboard.press('j');
    await pane.getByText('order-4711').waitFor({ state: 'detached' });
    await page.waitForURL(new RegExp(`peek=${id}`));
    await page.keyboard.press('Escape');
    await page.keyboard.press('Enter');
    await page.waitForURL(new RegExp(`sagas/${id}$`));
    const panel = page.getByRole('complementary', { name: /attempt/ });
    await panel.getByRole('heading', { name: '4. undo charge, attempt 1' }).waitFor();
    await page.getByRole('radio', { name: /^4: undo charge/ }).focus();
    for (const [key, heading] of [
      ['ArrowLeft', '3. charge, attempt 2'],
      ['ArrowUp', '1. reserve, attempt 1'],
      ['End', '4. undo charge, attempt 1'],
      ['Home', '1. reserve, attempt 1'],
      ['ArrowRight', '2. charge, attempt 1'],
    ] as const) {
      await page.keyboard.press(key);
      await panel.getByRole('heading', { name: heading }).waitFor();
    }
    assert.match(page.url(), /attempt=/);
    await page.keyboard.press('Shift+K');
    await page.waitForURL(new RegExp(`sagas/${correlated}`));
  });

  test('stuck ones are retried together, after the server has said what would happen', async (t) => {
    const workflow = await at.register([step('pay')]);
    at.shop.setScript(({ what }) =>
      what === 'pay' ? { status: 503 } : { status: 422, body: { error: 'closed' } },
    );
    const ids = [await at.start(workflow), await at.start(workflow)];
    for (const id of ids) await at.waitsForPerson(id);
    const page = await open(t, `/sagas?q=workflow:${workflow}`);
    await page.getByText('2 of 2').waitFor();
    await page.getByRole('checkbox', { name: 'Select all rows shown' }).check();
    await page.getByRole('button', { name: 'Retry the stuck ones of 2…' }).click();
    const dialog = page.getByRole('alertdialog', { name: 'Retry 2 sagas' });
    await dialog.getByText(`${workflow} / undo pay`).first().waitFor();
    at.shop.setScript(() => undefined);
    await dialog.getByLabel('Reason').fill('open again');
    await page.keyboard.press('Control+Enter');
    await page.getByText('Retried 2 sagas.').waitFor();
    for (const id of ids) await at.becomes(id, 'FAILED');
    const alone = await startStuck();
    at.shop.setScript(() => undefined);
    await page.goto(`${console.system.url}/sagas?q=is:stuck`);
    await page.locator(`[data-row-id="${alone}"] [data-row-link]`).focus();
    await page.keyboard.press('r');
    await page.getByRole('alertdialog', { name: 'Retry 1 saga' }).getByLabel('Reason').fill('and this one');
    await page.keyboard.press('Control+Enter');
    await page.getByText('Retried 1 saga.').waitFor();
    await at.becomes(alone, 'FAILED');
  });

  test('a log of hundreds of attempts is drawn whole, and its table only where one looks', async (t) => {
    const id = await startStuck();
    await at.system.db.query(sql`
      INSERT INTO saga.saga_step_logs
        (saga_id, step_index, step_name, action, attempt, status, answer, started_at, completed_at)
      SELECT ${id}, 1, 'charge', 'EXECUTE', n, 'TIMEOUT', 'unknown', now() - (600 - n) * interval '9 s',
             now() - (600 - n) * interval '9 s' + interval '1 s'
      FROM generate_series(3, 500) AS n`);
    const page = await open(t, `/sagas/${id}`);
    const log = page.getByRole('region', { name: 'Log' });
    await log.getByRole('row').nth(5).waitFor();
    assert.equal(await log.getByRole('table').getAttribute('aria-rowcount'), '503');
    assert.ok((await log.getByRole('row').count()) < 100);
    assert.equal(
      await page
        .getByRole('radiogroup', { name: /in the order/ })
        .getByRole('radio')
        .count(),
      502,
    );
    await page.getByRole('radio', { name: /^1: reserve/ }).focus();
    await page.keyboard.press('End');
    await page
      .getByRole('complementary')
      .getByRole('heading', { name: /^502\. undo charge/ })
      .waitFor();
    await log.getByRole('cell', { name: '502', exact: true }).waitFor();
    await assertAccessible(page);
  });

  test('workflows lead to their definitions, sagas and services', async (t) => {
    const id = await startStuck();
    const page = await open(t, '/sagas/workflows');
    await page.getByRole('cell', { name: 'shop', exact: true }).waitFor();
    await page.getByRole('link', { name: console.workflow, exact: true }).click();
    await page.getByRole('cell', { name: 'POST /undo-charge' }).waitFor();
    await page.getByText('pivot: after this only forward').waitFor();
    await page.getByRole('row').nth(1).getByRole('link').last().click();
    await page.waitForURL(/definition:sha256/);
    await page.locator(`[data-row-id="${id}"]`).waitFor();
  });

  test('a failing server and an unknown saga are errors, never an empty list', async (t) => {
    const page = await open(t, '/sagas/01900000-0000-7000-8000-000000000000', {
      expectedErrors: [/404/, /500/],
    });
    await page.getByRole('alert').getByText('SYS_SAGA_NOT_FOUND').waitFor();
    const failure = { status: 500, json: { error: { code: 'SYS_SAGA_INTERNAL_ERROR', message: 'broken' } } };
    for (const [path, api] of [
      ['/sagas', '**/api/v1/sagas?**'],
      ['/sagas/workflows', '**/api/v1/workflows'],
    ] as const) {
      await page.route(api, (route) => route.fulfill(failure));
      await page.goto(console.system.url + path);
      await page.getByRole('alert').getByText('SYS_SAGA_INTERNAL_ERROR').waitFor();
      assert.equal(await page.getByText(/^No (sagas|workflows)$/).count(), 0);
    }
  });

  for (const [theme, language] of [
    ['light', 'en'],
    ['dark', 'ja'],
  ] as const)
    test(`list, saga and workflows are accessible: ${theme}, ${language}`, async (t) => {
      const id = await startStuck();
      const page = await open(t, `/sagas?peek=${id}`, { theme, language });
      await page.getByRole('complementary').getByText('charge').first().waitFor();
      await assertAccessible(page);
      for (const path of [`/sagas/${id}`, '/sagas/workflows', `/sagas/workflows/${console.workflow}`]) {
        await page.goto(console.system.url + path);
        await page.getByText('charge').first().waitFor();
        await assertAccessible(page);
      }
      await page.setViewportSize({ width: 390, height: 844 });
      await page.goto(`${console.system.url}/sagas/${id}`);
      await page.getByRole('radio').first().waitFor();
      assert.equal(await page.evaluate('document.body.scrollWidth <= innerWidth'), true);
      await assertAccessible(page);
    });
});

describeConsole('sagas of a server that asks who one is', (browser) => {
  let system: ConsoleSystem;
  before(async () => {
    // Nobody listens there, so sagas wait.
    const services = { shop: { type: 'http', base_url: 'http://127.0.0.1:9' } };
    const protect = { rules: [{ fields: ['**.card'], patterns: ['email'] }] };
    system = await startGuardedConsole({ more: { services, protect } });
    const steps = [{ name: 'pay', service: 'shop', method: 'POST /pay', compensate: 'POST /refund' }];
    const yaml = JSON.stringify({ name: 'buy', steps });
    assert.equal((await system.api.post('/api/v1/workflows', { workflow_yaml: yaml })).status, 201);
  });
  after(() => system.drop());

  async function start(payload: object): Promise<string> {
    const body = { workflow_name: 'buy', payload };
    return (await system.api.post<{ saga_id: string }>('/api/v1/sagas', body)).body.saga_id;
  }

  test('without sagas the list says how to start one, and a filter without matches can be removed', async (t) => {
    const page = await openConsole(t, { browser, system, path: '/sagas' });
    await page.getByText('No sagas').waitFor();
    await page.getByText('npx redrive saga start').waitFor();
    await page.goto(`${system.url}/sagas?q=workflow:nowhere is:stuck`);
    await page.getByText('Nothing matches this filter').waitFor();
    await page.getByRole('button', { name: 'Remove workflow:nowhere' }).last().click();
    await page.waitForURL(/q=is:stuck$/);
  });

  test('protected parts are revealed with a reason, until the saga changes', async (t) => {
    const id = await start({ card: '4111-1111', sku: 'shoe' });
    const protectedPart = /4111-1111/;
    // As if it were stuck: nothing changes while one looks.
    await eventually(async () => {
      const [row] = await system.db.query(sql`
        UPDATE saga.saga_states
        SET status = 'RUNNING', needs_attention = true, stuck_step = 0, stuck_op = 'EXECUTE', wake_at = NULL,
            stuck_reason = 'no account of jane@example.com', waiting_for = NULL, waiting_since = NULL
        WHERE id = ${id} AND lease_owner IS NULL AND status = 'RUNNING'
        RETURNING id`);
      assert.ok(row !== undefined);
    });
    const path = `/sagas/${id}`;
    const auditor = await openConsole(t, { browser, system, as: 'sys_auditor', path });
    await auditor.getByRole('button', { name: /^Reveal/, description: /saga:payloads:view/ }).waitFor();
    const page = await openConsole(t, { browser, system, path });
    await page.locator('mark', { hasText: '[masked]' }).first().waitFor();
    assert.doesNotMatch((await page.textContent('body')) ?? '', protectedPart);
    await page.keyboard.press('v');
    await page.getByRole('alertdialog').getByLabel('Reason').fill('ticket 4711');
    await page.keyboard.press('Control+Enter');
    await page.getByText('no account of jane@example.com').first().waitFor();
    const payload = page.getByRole('region', { name: 'Payload of the saga' });
    await payload.getByText('"card": "4111-1111"').waitFor();
    const acts = await system.db.query(sql`
      SELECT reason FROM audit.events WHERE action = 'saga:payloads:view' AND resource = ${`saga/sagas/${id}`}`);
    assert.deepEqual(acts, [{ reason: 'ticket 4711' }]);
    await page.keyboard.press('v');
    await page.getByText('no account of jane@example.com').first().waitFor({ state: 'detached' });
    assert.doesNotMatch((await page.textContent('body')) ?? '', protectedPart);
  });

  test('who may only look sees every button, and the right that it needs', async (t) => {
    const started = { saga_id: await start({}) };
    const page = await openConsole(t, { browser, system, as: 'sys_auditor', path: '/sagas' });
    await page.locator(`[data-row-id="${started.saga_id}"]`).getByRole('checkbox').check();
    const bulk = { name: /^Retry the stuck/, description: /saga:sagas:repair/ };
    await page.getByRole('button', bulk).waitFor();
    await page.goto(`${system.url}/sagas/${started.saga_id}`);
    for (const [name, right] of [
      [/^Retry step/, /saga:sagas:repair/],
      [/^Skip step/, /saga:sagas:repair/],
      [/^It happened/, /saga:sagas:repair/],
      [/^Cancel/, /saga:sagas:cancel/],
      [/^Compensate/, /saga:sagas:compensate/],
    ] as const)
      await page.getByRole('button', { name, description: right }).waitFor();
    await page.getByRole('button', { name: /^Cancel/ }).press('Enter');
    assert.equal(await page.getByRole('alertdialog').count(), 0);
    assert.equal(await page.getByText('What the buttons do').count(), 0);
  });
});
