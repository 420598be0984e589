import type { TestContext } from 'node:test';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import type { ConsoleSystem } from './console-system.ts';
import { watchPage } from './watch-page.ts';

export type OpenOptions = Readonly<{
  browser: () => Promise<Browser>;
  system: Pick<ConsoleSystem, 'url' | 'tokenOf'>;
  /** Below the root of the server, with its prefix. */
  path?: string;
  /** The role of the user, where the server asks for tokens. */
  as?: string;
  /** Who it is, if it matters that several are not the same. */
  person?: string;
  theme?: 'light' | 'dark';
  language?: 'en' | 'ja';
  viewport?: Readonly<{ width: number; height: number }>;
  timeZone?: string;
  /** Errors in the browser's console that the test causes. */
  expectedErrors?: readonly RegExp[];
  /** Another tab of the same browser. */
  context?: BrowserContext;
}>;

/** For what a loaded machine does late; nothing waits this long where all is well. */
const patienceMs = 30_000;

/** Opens a page of the console as a user of a fresh browser would, and waits until it has a heading. */
export async function openConsole(t: TestContext, options: OpenOptions): Promise<Page> {
  const { system, path = '/', expectedErrors = [] } = options;
  const context = options.context ?? (await newContext(options));
  const page = await context.newPage();
  const watch = await watchPage(page, expectedErrors);
  t.after(async () => {
    if (!hasPassed(t)) t.diagnostic(`the page, as it was: ${await watch.save(t.name)}`);
    await (options.context === undefined ? context.close() : page.close());
    watch.assertNoErrors();
  });
  await page.goto(system.url + path);
  await page.getByRole('heading', { level: 1 }).waitFor();
  return page;
}

/** Known to Node, but not yet to its types. */
function hasPassed(t: TestContext): boolean {
  return (t as TestContext & Readonly<{ passed: boolean }>).passed;
}

async function newContext(options: OpenOptions): Promise<BrowserContext> {
  const { browser, system, as = 'sys_admin', theme = 'light', language = 'en' } = options;
  const token = await system.tokenOf(as, options.person);
  const running = await browser();
  const context = await running.newContext({
    viewport: options.viewport ?? { width: 1440, height: 900 },
    colorScheme: theme,
    locale: language === 'ja' ? 'ja-JP' : 'en-GB',
    timezoneId: options.timeZone ?? 'UTC',
    reducedMotion: 'reduce',
    ...(token === null ? {} : { extraHTTPHeaders: { authorization: `Bearer ${token}` } }),
  });
  context.setDefaultTimeout(patienceMs);
  return context;
}
