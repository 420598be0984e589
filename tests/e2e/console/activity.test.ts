import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { recordAct } from '../../../src/platform/audit/record-act.ts';
import { sql } from '../../../src/platform/postgres/sql.ts';
import { testAct } from '../../support/acts.ts';
import { assertAccessible } from '../../support/console/assert-accessible.ts';
import { startGuardedConsole, type ConsoleSystem } from '../../support/console/console-system.ts';
import { describeConsole } from '../../support/console/console-tests.ts';
import { tabTo } from '../../support/console/keyboard.ts';
import { openConsole } from '../../support/console/open-console.ts';
import { storeJobs } from '../../support/console/store-jobs.ts';

const hostile = '<img src=x onerror="document.title=\'owned\'">{{7*7}}<script>alert(1)</script>';

describeConsole('the activity', (browser) => {
  let system: ConsoleSystem;
  let jobs: readonly string[];
  before(async () => {
    system = await startGuardedConsole({
      more: {
        roles: ['api'],
        jobs: { queues: { 'in-mail': {}, push: {} } },
        protect: { rules: [{ topics: ['*'], patterns: ['email'], action: 'mask' }] },
      },
    });
    jobs = await storeJobs(system.db, { queue: 'in-mail', count: 3, status: 'dead_letter', error: 'x' });
  });
  after(() => system.drop());

  const pause = async (queue: string, reason: string): Promise<void> => {
    const { status, text } = await system.api.post(`/api/v1/jobs/queues/${queue}/pause`, { reason });
    assert.equal(status, 200, text);
  };

  test('before anybody has done anything it says what will be listed', async (t) => {
    const page = await openConsole(t, { browser, system, path: '/activity' });
    await page.getByRole('heading', { name: 'Nobody has done anything yet' }).waitFor();
  });

  test('by keyboard alone: who did what, why, and the page of what it was done to', async (t) => {
    const [id = ''] = jobs;
    await pause('in-mail', 'ask ada@example.com about the mail server');
    await system.api.post(`/api/v1/jobs/${id}/requeue`, {});
    const page = await openConsole(t, { browser, system });
    await page.keyboard.press('g');
    await page.keyboard.press('a');
    await page.getByRole('heading', { name: 'Activity', level: 1 }).waitFor();
    const paused = page.getByRole('row', { name: /Paused queue in-mail/ });
    await paused.getByText('success').waitFor();
    // As everywhere else, rules cover what people write.
    assert.match(await paused.innerText(), /ask \[masked\] about the mail server/);
    await tabTo(page, page.getByRole('link', { name: new RegExp(`job ${id}`) }));
    await page.keyboard.press('Enter');
    await page.waitForURL(new RegExp(`/jobs/list/${id}$`));
    await page.goBack();
    await tabTo(page, page.getByRole('combobox', { name: 'Filter' }));
    await page.keyboard.type('action:jobs:queues:pause outcome:success since:1h');
    await page.keyboard.press('Enter');
    await page.getByText('1 of 1').waitFor();
    await page.reload();
    await page.getByText('1 of 1').waitFor();
  });

  test('all acts of one operation are one link away', async (t) => {
    const answer = await system.api.post('/api/v1/jobs/requeue', {
      queue: 'in-mail',
      reason: 'the mail server is back',
    });
    assert.equal(answer.status, 200, answer.text);
    const page = await openConsole(t, { browser, system, path: '/activity' });
    await page
      .getByRole('link', { name: /All acts of this operation: Requeued/ })
      .first()
      .click();
    await page.waitForURL(/operation:/);
    await page.getByText('2 of 2').waitFor();
    assert.deepEqual(
      await page
        .getByRole('row')
        .evaluateAll((rows) =>
          rows.slice(1).map((row) => row.querySelector('[data-column="outcome"]')?.textContent),
        ),
      ['success', 'started'],
    );
    await page
      .getByRole('row', { name: /2 items/ })
      .first()
      .waitFor();
  });

  test('a new act feeds the pill, and Shift . shows it; nothing moves before', async (t) => {
    const page = await openConsole(t, { browser, system, path: '/activity' });
    await page.locator('[data-row-id]').first().waitFor();
    const before = await page.locator('[data-row-id]').count();
    const answer = await system.api.post(`/api/v1/jobs/${jobs[1]}/cancel`, { reason: 'not now' });
    assert.equal(answer.status, 200, answer.text);
    await page.getByRole('button', { name: /1 new/ }).waitFor();
    assert.equal(await page.locator('[data-row-id]').count(), before);
    await page.keyboard.press('Shift+Period');
    await page.getByRole('row', { name: new RegExp(`Cancelled job ${jobs[1]}`) }).waitFor();
  });

  test('what was refused is not listed; who may see it is told where it is', async (t) => {
    await system.db.transaction((tx) =>
      recordAct(tx, testAct('jobs:queues:pause'), { resource: 'jobs/queues/refused', outcome: 'denied' }),
    );
    const page = await openConsole(t, { browser, system, path: '/activity' });
    await page.getByText('npx redrive audit export').waitFor();
    await page.locator('[data-row-id]').first().waitFor();
    assert.equal(await page.getByText('refused', { exact: true }).count(), 0);
    const operator = await openConsole(t, { browser, system, path: '/activity', as: 'sys_operator' });
    await operator.locator('[data-row-id]').first().waitFor();
    assert.equal(await operator.getByText('npx redrive audit').count(), 0);
  });

  test('who may see some queues only sees the acts on those', async (t) => {
    await pause('push', 'the push partner is away');
    const page = await openConsole(t, { browser, system, path: '/activity', as: 'narrow_sys_operator' });
    await page.getByRole('row', { name: /Paused queue in-mail/ }).waitFor();
    assert.equal(await page.getByText('push').count(), 0);
  });

  test('hostile and far too long texts are texts', async (t) => {
    for (const text of [hostile, '長'.repeat(900), 'W'.repeat(900)])
      await system.db.transaction((tx) =>
        recordAct(
          tx,
          { ...testAct('jobs:queues:pause', text), actor: { type: 'cli', id: text, name: text, roles: [] } },
          { resource: `jobs/queues/${text}` },
        ),
      );
    const page = await openConsole(t, { browser, system, path: '/activity' });
    await page
      .getByRole('row', { name: /\{\{7\*7\}\}/ })
      .first()
      .waitFor();
    assert.notEqual(await page.title(), 'owned');
    const box = await page.evaluate('document.documentElement.scrollWidth');
    assert.equal(box, 1440);
    await page.setViewportSize({ width: 320, height: 800 });
    assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 320);
  });

  test('long lists come by pages', async (t) => {
    await system.db.query(sql`
      INSERT INTO audit.events (kept, actor_type, actor_id, actor_name, roles, action, outcome, resource)
      SELECT 'usual', 'cli', 'many', 'many', '{}', 'jobs:jobs:cancel', 'success', 'jobs/jobs/' || n
      FROM generate_series(1, 150) AS n`);
    const page = await openConsole(t, { browser, system, path: '/activity?q=actor:many' });
    await page.getByText('100 of 150').waitFor();
    await page.getByRole('button', { name: /Load 100 more/ }).click();
    await page.getByText('150 of 150').waitFor();
  });

  test('a server in trouble is an error, never an empty list', async (t) => {
    const page = await openConsole(t, { browser, system, path: '/system', expectedErrors: [/500/] });
    await page.route('**/api/v1/activity*', (route) =>
      route.fulfill({ status: 500, json: { error: { code: 'SYS_AUDIT_INTERNAL', message: 'broken' } } }),
    );
    await page.goto(`${system.url}/activity`);
    await page.getByRole('alert').getByText('SYS_AUDIT_INTERNAL').waitFor();
    assert.equal(await page.getByRole('heading', { level: 2 }).count(), 0);
    await page.goto(`${system.url}/activity?q=actor:nobody`);
    await page.getByRole('alert').getByText('SYS_AUDIT_INTERNAL').waitFor();
    await page.unroute('**/api/v1/activity*');
    await page.getByRole('button', { name: 'Retry' }).click();
    await page.getByRole('heading', { level: 2 }).waitFor();
    await page.getByRole('button', { name: 'Remove actor:nobody' }).last().waitFor();
  });

  for (const [theme, language] of [
    ['light', 'en'],
    ['dark', 'ja'],
  ] as const)
    test(`is accessible, also on a phone: ${theme}, ${language}`, async (t) => {
      const page = await openConsole(t, { browser, system, path: '/activity', theme, language });
      await page.locator('[data-row-id]').first().waitFor();
      if (language === 'ja') await page.getByText('一時停止').first().waitFor();
      await assertAccessible(page);
      await page.setViewportSize({ width: 390, height: 844 });
      await assertAccessible(page);
      assert.equal(await page.evaluate('document.documentElement.scrollWidth'), 390);
    });
});
