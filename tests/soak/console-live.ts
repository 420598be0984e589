import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Page } from 'playwright-core';
import { setTimeout as delay } from 'node:timers/promises';
import { sql } from '../../src/platform/postgres/sql.ts';
import { whyNoKafka } from '../../tools/kafka/kafka-for-tests.ts';
import { openScene } from '../chaos/support/scene.ts';
import { createApiClient } from '../support/api-client.ts';
import { startConsoleSystem, type ConsoleSystem } from '../support/console/console-system.ts';
import { describeConsole } from '../support/console/console-tests.ts';
import { openConsole } from '../support/console/open-console.ts';
import { storeFailures } from '../support/console/store-failures.ts';
import { eventually } from '../support/eventually.ts';
import { planRedrive, showRedrive } from '../support/redrives.ts';

const whyNot = await whyNoKafka();

/**
 * `npm test -- tests/soak/console-live.ts --test-timeout=300000`: what takes too long for every run. A server that is
 * killed in the middle of a redrive while a page shows it, and a list of 500 rows under 200 changes a second.
 */
describeConsole('the console and a killed server', (browser) => {
  void test('the page reconnects, the redrive goes on, and its figures too', { skip: whyNot }, async (t) => {
    const at = await openScene();
    t.after(() => at.close());
    const env = { SERVER_PORT: '18473' };
    const first = await at.start(undefined, env);
    await storeFailures(at.db, { name: 'killed', count: 400, topic: at.originalTopic, group: null });
    const api = createApiClient(first.url);
    await eventually(async () => assert.equal((await api.get('/')).status, 200));
    const { id } = await planRedrive(api, { rate_per_second: 20, canary: null });
    assert.ok((await api.post(`/api/v1/dlq/redrives/${id}/start`, {})).status < 300);
    const page = await openConsole(t, {
      browser,
      system: { url: first.url, tokenOf: async () => null },
      path: `/dlq/redrives/${id}`,
      expectedErrors: [/Failed to load resource/, /net::ERR_/, /EventSource/],
    });
    await page.getByRole('button', { name: /^Live/ }).waitFor();
    const shown = async (): Promise<number> => {
      const text =
        (await page.getByRole('button', { name: /^Operations/ }).count()) === 0 ? '' : await figures(page);
      return Number(/(\d+) of 400/.exec(text)?.[1] ?? 0);
    };
    await eventually(async () => assert.ok((await shown()) > 40));
    await first.kill();
    const atKill = await shown();
    await page.getByRole('button', { name: /^(Reconnecting|Stale)/ }).waitFor();
    const second = await at.start(undefined, env);
    await page.getByRole('button', { name: /^Live/ }).waitFor({ timeout: 60_000 });
    await eventually(async () => assert.ok((await shown()) > atKill + 20), { withinMs: 90_000 });
    const now = createApiClient(second.url);
    await eventually(async () => assert.equal((await showRedrive(now, id)).state, 'finished'), {
      withinMs: 90_000,
    });
    await page.getByRole('heading', { name: 'Receipt' }).waitFor();
  });
});

async function figures(page: Page): Promise<string> {
  return (await page.locator('section[popover]').allTextContents()).join(' ');
}

describeConsole('a list under load', (browser) => {
  let system: ConsoleSystem;
  before(async () => {
    system = await startConsoleSystem();
    await storeFailures(system.db, { name: 'many', count: 600 });
  });
  after(() => system.drop());

  void test('500 rows under 200 changes a second for 20 s stay smooth and where they are', async (t) => {
    const page = await openConsole(t, { browser, system, path: '/dlq/messages' });
    await page.getByRole('button', { name: /^Live/ }).waitFor();
    for (let rows = 200; rows <= 500; rows += 100) {
      await page.getByRole('button', { name: /Load 100 more/ }).click();
      await page
        .locator('[data-row-id]')
        .nth(rows - 1)
        .waitFor();
    }
    await page.locator('[data-row-link]').nth(250).focus();
    await page.evaluate(observe);
    const before = await page.evaluate<Place>('place()');
    let lists = 0;
    page.on('request', (request) => {
      if (/\/dlq\/messages\?/.test(request.url())) lists += 1;
    });
    const seconds = 20;
    for (let i = 0; i < seconds * 10; i += 1) {
      const begunMs = performance.now();
      await system.db.query(sql`
        UPDATE dlq.dlq_messages SET status = CASE status WHEN 'DEAD' THEN 'PENDING' ELSE 'DEAD' END
        WHERE id IN (SELECT id FROM dlq.dlq_messages ORDER BY created_at DESC OFFSET ${(i * 20) % 480} LIMIT 20)`);
      await delay(Math.max(0, 100 - (performance.now() - begunMs)));
    }
    const seen = await page.evaluate<Seen>('stopObserving()');
    t.diagnostic(
      `${seen.fps.toFixed(0)} frames a second; long tasks: ${seen.longTasks.length}, longest ${Math.max(0, ...seen.longTasks).toFixed(0)} ms; ` +
        `${(seen.commits / seconds).toFixed(1)} commits and ${(lists / seconds).toFixed(1)} lists a second`,
    );
    assert.deepEqual(await page.evaluate<Place>('place()'), before);
    assert.ok(lists <= seconds * 1.1, `${lists} lists were read`);
    assert.ok(seen.commits <= seconds * 4.5, `${seen.commits} commits`);
  });
});

type Place = Readonly<{ scrolled: number; focused: string; top: number }>;
type Seen = Readonly<{ fps: number; longTasks: readonly number[]; commits: number }>;

/** Runs in the page. React draws in one task, so a batch of mutations is a commit. */
const observe = `
  window.place = () => ({
    scrolled: document.getElementById('content').scrollTop,
    focused: document.activeElement.closest('[data-row-id]')?.dataset.rowId,
    top: document.activeElement.getBoundingClientRect().top,
  });
  (() => {
    let frames = 0;
    let commits = 0;
    let isOver = false;
    const longTasks = [];
    const begunMs = performance.now();
    const tick = () => { frames += 1; if (!isOver) requestAnimationFrame(tick); };
    requestAnimationFrame(tick);
    const mutations = new MutationObserver(() => (commits += 1));
    mutations.observe(document.querySelector('[data-list]'), { subtree: true, childList: true, attributes: true, characterData: true });
    const tasks = new PerformanceObserver((list) => longTasks.push(...list.getEntries().map((one) => one.duration)));
    tasks.observe({ type: 'longtask' });
    window.stopObserving = () => {
      isOver = true;
      mutations.disconnect();
      tasks.disconnect();
      return { fps: frames / ((performance.now() - begunMs) / 1000), longTasks, commits };
    };
  })()`;
