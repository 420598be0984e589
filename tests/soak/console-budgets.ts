import { after, before, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { sql } from '../../src/platform/postgres/sql.ts';
import { startConsoleSystem, type ConsoleSystem } from '../support/console/console-system.ts';
import { describeConsole } from '../support/console/console-tests.ts';
import { storeMany } from '../support/console/store-many.ts';

/**
 * `npm test -- tests/soak/console-budgets.ts --test-timeout=900000`: how long what an operator does takes, with a
 * million rows in each list (`ROWS`), as medians of five beside an empty page of the same server. Prints the figures,
 * and fails nothing: machines differ.
 */
const rows = Number(process.env['ROWS'] ?? 1_000_000);
const rounds = 5;
const lists = {
  groups: '/dlq/groups',
  messages: '/dlq/messages',
  orders: '/outbox/orders',
  jobs: '/jobs/list',
  sagas: '/sagas',
};

describeConsole('budgets of the console', (browser) => {
  let system: ConsoleSystem;
  let large: string;
  before(async () => {
    system = await startConsoleSystem({ env: { ROLES: 'api' } });
    await storeMany(system.db, rows);
    const [row] = await system.db.query<{ id: string }>(sql`
      INSERT INTO dlq.dlq_messages (original_topic, error_message, source_topic, raw_value)
      VALUES ('large', 'broken', 'large.dlq', convert_to('{"text": "' || repeat('x', 5000000) || '"}', 'UTF8'))
      RETURNING id`);
    large = row?.id ?? '';
  });
  after(() => system.drop());

  void test('are measured', async () => {
    const running = await browser();
    const say = (name: string, ms: number, budget: string): void =>
      void process.stdout.write(`  ${name.padEnd(58)} ${ms.toFixed(0).padStart(6)} ms   ${budget}\n`);
    process.stdout.write(`\n${rows.toLocaleString('en')} rows in each list, medians of ${rounds}\n`);
    for (const rate of [1, 4]) {
      const floor = await cold(running, `${system.url}/healthz`, rate, 'body');
      say(`empty page, processor / ${rate}`, floor, 'floor');
      for (const [name, path] of Object.entries(lists))
        say(
          `first row of ${name}, nothing cached, processor / ${rate}`,
          await cold(running, system.url + path, rate, '[data-row-link]'),
          rate === 1 ? '600' : '1200',
        );
    }
    const context = await running.newContext({ viewport: { width: 1440, height: 900 } });
    const page = await openWith(context, system.url + lists.messages, '[data-row-link]');
    for (const [name, path] of Object.entries(lists)) {
      if (name === 'messages') continue;
      const there = await medianOf(() => follow(page, path), 1);
      const back = await medianOf(() => goBack(page), 1);
      say(`from messages to ${name}, loaded before`, there, '200');
      say(`back from ${name} to messages`, back, '50');
    }
    await page.locator('[data-row-link]').first().focus();
    say('key j to painted focus', await medianOf(() => press(page, 'j')), '50');
    await page.keyboard.press(' ');
    await page.getByRole('complementary').locator('pre').first().waitFor();
    say('preview after its 80 ms', (await medianOf(() => peekNext(page))) - 80, '150');
    say('tab of a payload of 5 MB', await medianOf(() => openPayload(context, system.url, large)), '500');
    await requestsOf(page);
    await context.close();
  });
});

/** From the start of the navigation to the frame after the element came. */
const watch = (selector: string): string => `
  window.shown = new Promise((resolve) => {
    const look = () => document.querySelector(${JSON.stringify(selector)}) === null
      ? requestAnimationFrame(look)
      : requestAnimationFrame(() => resolve(performance.now()));
    look();
  });`;

async function cold(browser: Browser, url: string, rate: number, selector: string): Promise<number> {
  return medianOf(async () => {
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
    try {
      const page = await context.newPage();
      const session = await context.newCDPSession(page);
      await session.send('Emulation.setCPUThrottlingRate', { rate });
      await page.addInitScript(watch(selector));
      await page.goto(url);
      return await page.evaluate<number>('shown');
    } finally {
      await context.close();
    }
  });
}

async function openWith(context: BrowserContext, url: string, selector: string): Promise<Page> {
  const page = await context.newPage();
  await page.goto(url);
  await page.locator(selector).first().waitFor();
  return page;
}

/** Follows a link of the navigation, twice: the first time loads the page. */
async function follow(page: Page, path: string): Promise<number> {
  const [, area = ''] = path.split('/');
  const measure = async (): Promise<number> => page.evaluate<number>(timed(`clickArea('/${area}')`));
  await page.evaluate(helpers);
  await measure();
  await page.evaluate<number>(timed('history.back()'));
  return measure();
}

async function goBack(page: Page): Promise<number> {
  return page.evaluate<number>(timed('history.back()'));
}

const helpers = `
  window.clickArea = (start) => document.querySelector('nav a[href^="' + start + '"]').click();
  window.firstRow = () => document.querySelector('[data-row-link]')?.getAttribute('href') ?? null;`;

/** Until the rows of another list were painted. */
const timed = (act: string): string => `(async () => {
  const before = firstRow();
  const begunMs = performance.now();
  ${act};
  while (firstRow() === before || firstRow() === null) await new Promise(requestAnimationFrame);
  await new Promise(requestAnimationFrame);
  return performance.now() - begunMs;
})()`;

/** From the key to the frame after the focus has moved. */
async function press(page: Page, key: string): Promise<number> {
  await page.evaluate(`window.moved = new Promise((resolve) => addEventListener('keydown', ({ timeStamp }) =>
    requestAnimationFrame(() => setTimeout(() => resolve(performance.now() - timeStamp))), { once: true, capture: true }))`);
  await page.keyboard.press(key);
  return page.evaluate<number>('moved');
}

/** From the key to the content of the next preview. */
async function peekNext(page: Page): Promise<number> {
  await page.evaluate(`window.moved = new Promise((resolve) => addEventListener('keydown', async ({ timeStamp }) => {
    const shown = () => document.querySelector('aside:not(:has(nav)) h2')?.closest('aside')?.textContent ?? '';
    const before = shown();
    while (shown() === before || document.querySelector('aside:not(:has(nav)) pre') === null) await new Promise(requestAnimationFrame);
    resolve(performance.now() - timeStamp);
  }, { once: true, capture: true }))`);
  await page.keyboard.press('j');
  const ms = await Promise.race([page.evaluate<number>('moved'), delay(5000, Number.NaN)]);
  await delay(300);
  return ms;
}

async function openPayload(context: BrowserContext, url: string, id: string): Promise<number> {
  const page = await openWith(context, `${url}/dlq/messages/${id}`, '[aria-keyshortcuts="2"]');
  await page.evaluate(`window.moved = new Promise((resolve) => addEventListener('keydown', async ({ timeStamp }) => {
    while (document.querySelector('.cm-line') === null) await new Promise(requestAnimationFrame);
    resolve(performance.now() - timeStamp);
  }, { once: true, capture: true }))`);
  await page.keyboard.press('2');
  const ms = await page.evaluate<number>('moved');
  await page.close();
  return ms;
}

async function medianOf(measure: () => Promise<number>, times = rounds): Promise<number> {
  const all: number[] = [];
  for (let i = 0; i < times; i += 1) all.push(await measure());
  return all.toSorted((a, b) => a - b)[Math.floor(all.length / 2)] ?? Number.NaN;
}

async function requestsOf(page: Page): Promise<void> {
  const seconds = 10;
  const asked: string[] = [];
  page.on('request', (request) => void asked.push(new URL(request.url()).pathname));
  await delay(seconds * 1000);
  process.stdout.write(
    `  requests of a page in ${seconds} s without changes: ${asked.length} ${asked.join(' ')}\n`,
  );
}
