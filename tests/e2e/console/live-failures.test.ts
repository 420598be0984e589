import { after, before, test, type TestContext } from 'node:test';
import type { Locator, Page, Route } from 'playwright-core';
import { startConsoleSystem, type ConsoleSystem } from '../../support/console/console-system.ts';
import { describeConsole } from '../../support/console/console-tests.ts';
import { openConsole } from '../../support/console/open-console.ts';
import { storeFailures } from '../../support/console/store-failures.ts';

/** What an engineer sees when the server, or what is between, does not do what it should. */
describeConsole('a console whose server is in trouble', (browser) => {
  let system: ConsoleSystem;
  before(async () => {
    system = await startConsoleSystem();
    await storeFailures(system.db, { name: 'shown', count: 3 });
  });
  after(() => system.drop());

  const isList = /\/api\/v1\/dlq\/messages\?/;
  const state = (page: Page, name: string): Locator =>
    page.getByRole('button', { name: new RegExp(`^${name}`) });

  /** A page whose requests can be tampered with, opened when `prepare` has done so. */
  async function open(
    t: TestContext,
    prepare: (page: Page) => Promise<void> = async () => {},
  ): Promise<Page> {
    const running = await browser();
    const context = await running.newContext({
      viewport: { width: 1440, height: 900 },
      reducedMotion: 'reduce',
    });
    t.after(() => context.close());
    context.setDefaultTimeout(30_000);
    const blank = await context.newPage();
    await prepare(blank);
    await blank.close();
    return openConsole(t, {
      browser,
      system,
      context,
      path: '/dlq/messages',
      expectedErrors: [/Failed to load resource/, /net::ERR_/, /EventSource/],
    });
  }

  const answer = (status: number, code: string) => (route: Route) =>
    route.fulfill({ status, json: { error: { code, message: `it is ${status}`, request_id: 'r-1' } } });

  for (const [status, code] of [
    [503, 'SYS_DLQ_UNAVAILABLE'],
    [500, 'SYS_DLQ_INTERNAL_ERROR'],
  ] as const)
    test(`a list that is answered with ${status} keeps its rows, says so, and recovers by itself`, async (t) => {
      const page = await open(t);
      await state(page, 'Live').waitFor();
      await page.getByRole('link', { name: /shown/ }).first().waitFor();
      await page.route(isList, answer(status, code));
      await storeFailures(system.db, { name: `after-${status}`, count: 1 });
      const alert = page.getByRole('alert').filter({ hasText: code });
      await alert.waitFor();
      await page.getByRole('link', { name: /shown/ }).first().waitFor();
      await page.unroute(isList);
      await storeFailures(system.db, { name: `then-${status}`, count: 1 });
      await alert.waitFor({ state: 'detached' });
      await page.getByRole('button', { name: '2 new' }).waitFor();
    });

  test('a stream that is refused becomes polling, and live again when it is let through', async (t) => {
    const page = await open(t, async (first) => {
      await first.context().route('**/api/v1/events', answer(503, 'SYS_HTTP_UNAVAILABLE'));
    });
    await state(page, 'Polling 5 s').waitFor();
    await storeFailures(system.db, { name: 'polled', count: 1 });
    await page.getByRole('button', { name: '1 new' }).waitFor();
    await page.context().unroute('**/api/v1/events');
    await state(page, 'Live').waitFor();
  });

  test('a proxy that holds the events back is noticed', async (t) => {
    const page = await open(t, async (first) => {
      // Never answered.
      await first.context().route('**/api/v1/events', () => {});
    });
    await state(page, 'Polling 5 s').waitFor();
    await page.context().unrouteAll({ behavior: 'ignoreErrors' });
  });

  test('without a server the page says that it is reconnecting, then how old it is, and comes back', async (t) => {
    const page = await open(t);
    await state(page, 'Live').waitFor();
    await page.clock.install();
    await page.context().setOffline(true);
    await page.clock.fastForward(11_000);
    await state(page, 'Reconnecting').waitFor();
    await page.clock.fastForward(10_000);
    await state(page, 'Stale').waitFor();
    await page.getByText(/· \d\d s/).waitFor();
    await page.getByRole('link', { name: /shown/ }).first().waitFor();
    await page.context().setOffline(false);
    await page.clock.fastForward(20_000);
    await state(page, 'Live').waitFor();
  });

  test('a session that ended is said once, and the stream does not hide it', async (t) => {
    const page = await open(t, async (first) => {
      await first.context().route('**/api/v1/events', answer(401, 'SYS_AUTH_MISSING_TOKEN'));
    });
    await page.context().route('**/api/v1/me', answer(401, 'SYS_AUTH_MISSING_TOKEN'));
    await page.getByRole('alert').filter({ hasText: 'Your session has ended' }).waitFor();
  });
});
