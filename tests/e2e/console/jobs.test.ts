import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { assertAccessible } from '../../support/console/assert-accessible.ts';
import { startGuardedConsole, type ConsoleSystem } from '../../support/console/console-system.ts';
import { describeConsole } from '../../support/console/console-tests.ts';
import { openConsole } from '../../support/console/open-console.ts';
import { storeJobs } from '../../support/console/store-jobs.ts';

const stack = [
  'TimeoutError: the summarizer did not answer within 3000 ms',
  '    at summarize (/app/src/summarize.ts:12:7)',
  '    at processTicksAndRejections (node:internal/process/task_queues:104:5)',
  '    at async run (node:internal/timers:1:1)',
].join('\n');

describeConsole('jobs', (browser) => {
  let system: ConsoleSystem;
  let dead: readonly string[];
  before(async () => {
    // No worker runs, so that jobs stay as they are.
    system = await startGuardedConsole({
      more: {
        roles: ['api'],
        jobs: {
          queues: { summarize: { global_concurrency: 4, rate_limit: '30/m' } },
          cron: { nightly: { schedule: '0 3 * * *', queue: 'reports' } },
        },
      },
    });
    const { db } = system;
    dead = await storeJobs(db, {
      queue: 'summarize',
      count: 12,
      status: 'dead_letter',
      error: 'timed out after 3000 ms',
      stack,
      payload: '{"article": 9007199254740993, "text": "要約"}',
    });
    await storeJobs(db, { queue: 'mail', count: 2, status: 'dead_letter', error: 'no such user' });
    await storeJobs(db, { queue: 'summarize', count: 3, status: 'completed' });
    await storeJobs(db, { queue: 'summarize', count: 1, status: 'running' });
    await storeJobs(db, { queue: 'mail', count: 2, status: 'failed', error: 'SMTP 451: try again later' });
    await storeJobs(db, { queue: 'mail', count: 4, dedupeKey: `key-${'x'.repeat(400)}` });
  });
  after(() => system.drop());

  test('the list counts by status, filters, and its view is in the address', async (t) => {
    const page = await openConsole(t, { browser, system, path: '/jobs' });
    await page.waitForURL(/\/jobs\/list$/);
    await page.getByRole('button', { name: 'dead_letter 14' }).click();
    await page.waitForURL(/\?q=status:dead_letter$/);
    await page.getByText('14 of 14').waitFor();
    await page.getByRole('combobox', { name: 'Filter' }).fill('status:dead_letter queue:mail');
    await page.keyboard.press('Enter');
    await page.getByText('2 of 2').waitFor();
    await page.goBack();
    await page.getByText('14 of 14').waitFor();
    await page.goForward();
    await page.reload();
    await page.getByText('2 of 2').waitFor();
    await page.locator('[data-row-link]').nth(1).focus();
    await page.keyboard.press('Space');
    const shared = page.url();
    assert.match(shared, /peek=/);
    await page.goto(shared);
    await page.getByRole('complementary', { name: 'Preview' }).getByText('no such user').first().waitFor();
    assert.equal(page.url(), shared);
    await page.keyboard.press('Escape');
    await page.getByRole('combobox', { name: 'Filter' }).fill('status:wrong');
    await page.keyboard.press('Enter');
    await page
      .getByRole('alert')
      .getByText(/the value must be pending/)
      .waitFor();
  });

  test('by keyboard alone: dead by error, to the plan, to a requeue that adds up', async (t) => {
    const queue = 'burnt';
    await storeJobs(system.db, { queue, count: 3, status: 'dead_letter', error: 'oven is cold' });
    const page = await openConsole(t, { browser, system, path: '/jobs/list?view=dead' });
    const row = page.getByRole('link', { name: 'oven is cold' });
    await row.focus();
    await page.keyboard.press('r');
    await page.waitForURL(/\/jobs\/requeue\?q=queue:burnt/);
    const button = page.getByRole('button', { name: /Requeue 3 jobs/ });
    await button.waitFor();
    // What dies meanwhile is not part of what was previewed.
    await storeJobs(system.db, { queue, count: 1, status: 'dead_letter', error: 'oven is cold' });
    await page.keyboard.press('Control+Enter');
    await page.getByText('A reason is required.').waitFor();
    await page.getByRole('textbox', { name: 'Reason' }).focus();
    await page.keyboard.type('the oven is hot again');
    await page.keyboard.press('Control+Enter');
    await page.getByRole('status').getByText('Requeued 3 jobs.').waitFor();
    type List = Readonly<{ jobs: readonly Readonly<{ status: string }>[] }>;
    const { body } = await system.api.get<List>(`/api/v1/jobs?queue=${queue}`);
    assert.deepEqual(body.jobs.map(({ status }) => status).toSorted(), [
      'dead_letter',
      'pending',
      'pending',
      'pending',
    ]);
  });

  test('a job whose dedupe key is taken is skipped, and named', async (t) => {
    const queue = 'keyed';
    const [old] = await storeJobs(system.db, {
      queue,
      count: 1,
      status: 'dead_letter',
      error: 'late',
      dedupeKey: 'k',
    });
    await storeJobs(system.db, { queue, count: 1, dedupeKey: 'k' });
    await storeJobs(system.db, { queue, count: 1, status: 'dead_letter', error: 'late' });
    const page = await openConsole(t, { browser, system, path: `/jobs/requeue?q=queue:${queue}` });
    await page.getByRole('textbox', { name: 'Reason' }).fill('again');
    await page.getByRole('button', { name: /Requeue 1 job/ }).click();
    await page.getByText('1 skipped.').waitFor();
    await page.getByRole('row', { name: new RegExp(old?.slice(-4) ?? '') }).waitFor();
  });

  test('a job says where it stands, shows its stack and exact numbers, and is requeued', async (t) => {
    const [id = ''] = dead;
    const page = await openConsole(t, { browser, system, path: `/jobs/list/${id}` });
    await page.getByText(/^Dead after 3 of 3 attempts/).waitFor();
    await page.getByText('summarize (/app/src/summarize.ts:12:7)').waitFor();
    await page.getByText('2 frames of libraries').waitFor();
    await page.keyboard.press('2');
    await page.getByRole('region', { name: 'Payload' }).getByText('9007199254740993').first().waitFor();
    await page.keyboard.press('r');
    await page.getByText(/^Requeued: it waits in summarize/).waitFor();
    await page.getByText(/^Waits until a worker takes it/).waitFor();
  });

  test('another operator was faster: the refusal is a sentence, and the new status is shown', async (t) => {
    const [, id = ''] = dead;
    const page = await openConsole(t, {
      browser,
      system,
      path: `/jobs/list/${id}`,
      expectedErrors: [/409/],
    });
    await page.getByRole('button', { name: /Discard/ }).click();
    const dialog = page.getByRole('alertdialog', { name: 'Discard the dead letter' });
    await dialog.getByRole('textbox', { name: 'Reason' }).fill('too old');
    await system.api.post(`/api/v1/jobs/${id}/requeue`, {});
    await dialog.getByRole('button', { name: /Discard the dead letter/ }).click();
    await dialog
      .getByRole('alert')
      .getByText(/status=pending/)
      .waitFor();
    await page.keyboard.press('Escape');
    await page.getByText(/^Waits until a worker takes it/).waitFor();
  });

  test('several are discarded with one reason; the progress ends in a figure', async (t) => {
    await storeJobs(system.db, { queue: 'trash', count: 5, status: 'dead_letter', error: 'rotten' });
    const page = await openConsole(t, { browser, system, path: '/jobs/list?q=queue:trash' });
    await page.getByText('5 of 5').waitFor();
    await page.getByRole('checkbox', { name: 'Select all rows shown' }).click();
    await page.getByRole('button', { name: 'Discard 5…' }).click();
    await page.getByRole('textbox', { name: 'Reason' }).fill('rotten anyway');
    await page.getByRole('button', { name: /Discard 5 dead letters/ }).click();
    await page.getByRole('status').getByText('Discarded 5.').waitFor();
    await page
      .getByRole('row', { name: /discarded/ })
      .first()
      .waitFor();
  });

  test('a queue is paused with a reason, and resumed', async (t) => {
    const page = await openConsole(t, { browser, system, path: '/jobs/queues' });
    const row = page.getByRole('row', { name: /^summarize/ });
    await row.getByText('1 of 4').waitFor();
    await row.getByRole('img', { name: /running 1/ }).waitFor();
    await row.getByRole('link', { name: 'summarize' }).focus();
    await page.keyboard.press('p');
    await page.getByRole('textbox', { name: 'Reason' }).fill('the summarizer is down');
    await page.keyboard.press('Control+Enter');
    await row.getByText(/Paused by .*: the summarizer is down/).waitFor();
    await row.getByRole('button', { name: /Resume/ }).click();
    await page.getByRole('button', { name: /Resume summarize/ }).click();
    await row.getByText('Claimed by workers').waitFor();
  });

  test('a schedule that no worker has seen says so', async (t) => {
    const page = await openConsole(t, { browser, system, path: '/jobs/schedules' });
    const row = page.getByRole('row', { name: /^nightly/ });
    await row.getByText('No worker has seen it: it does not run').waitFor();
  });

  test('who may only look sees every action, disabled, with the reason', async (t) => {
    const as = 'sys_auditor';
    const page = await openConsole(t, { browser, system, path: `/jobs/list/${dead[2]}`, as });
    const requeue = page.getByRole('button', { name: /Requeue/, description: /jobs:jobs:requeue/ });
    assert.equal(await requeue.getAttribute('aria-disabled'), 'true');
    await page.goto(`${system.url}/jobs/queues`);
    await page
      .getByRole('button', { name: /Pause/, description: /jobs:queues:pause/ })
      .first()
      .waitFor();
    await page.keyboard.press('p');
    assert.equal(await page.getByRole('alertdialog').count(), 0);
  });

  test('a failing server and an unknown job are errors, never an empty page', async (t) => {
    const page = await openConsole(t, {
      browser,
      system,
      path: '/jobs/list/00000000-0000-7000-8000-000000000000',
      expectedErrors: [/404/, /500/],
    });
    await page.getByRole('alert').getByText('SYS_JOBS_NOT_FOUND').waitFor();
    for (const path of ['list', 'list?view=dead', 'queues', 'schedules', 'requeue?q=queue:mail']) {
      await page.route(/\/api\/v1\/jobs/, (route) =>
        route.fulfill({
          status: 500,
          json: { error: { code: 'SYS_JOBS_INTERNAL_ERROR', message: 'broken' } },
        }),
      );
      await page.goto(`${system.url}/jobs/${path}`);
      await page.getByRole('alert').getByText('SYS_JOBS_INTERNAL_ERROR').waitFor();
      assert.equal(await page.getByRole('heading', { level: 2 }).count(), 0, path);
    }
  });

  for (const theme of ['light', 'dark'] as const)
    test(`every page is accessible: ${theme}`, async (t) => {
      const page = await openConsole(t, {
        browser,
        system,
        path: '/jobs/list',
        theme,
        language: theme === 'dark' ? 'ja' : 'en',
      });
      for (const path of ['list', 'list?view=dead', `list/${dead[3]}`, 'queues', 'requeue?q=queue:mail']) {
        await page.goto(`${system.url}/jobs/${path}`);
        await page.locator('[data-row-id], pre, textarea').first().waitFor();
        await assertAccessible(page);
      }
    });

  test('on a phone nothing runs out of the page', async (t) => {
    const page = await openConsole(t, {
      browser,
      system,
      path: '/jobs/list',
      viewport: { width: 390, height: 844 },
    });
    for (const path of [
      'list',
      'list?view=dead',
      `list/${dead[3]}`,
      'queues',
      'schedules',
      'requeue?q=queue:mail',
    ]) {
      await page.goto(`${system.url}/jobs/${path}`);
      await page.locator('[data-row-id], pre, textarea').first().waitFor();
      const width = await page.evaluate('document.documentElement.scrollWidth');
      assert.equal(width, 390, path);
    }
  });
});
