import { mkdir, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { chromium, type Page } from 'playwright-core';
import { findChromium } from '../tests/support/console/find-chromium.ts';
import { startDevProcess } from '../tests/support/dev-process.ts';
import { smallPng } from './small-png.ts';

/**
 * Makes docs/images/console-*.png, light and dark: starts `npm start`, lets its demo fail for a while, and takes
 * pictures of the main screens in a real Chromium. `node_modules/.bin/node tools/console-pictures.ts`, whenever a screen
 * changes. tests/docs/pictures.test.ts knows how large they may be.
 *
 * With `--url` it uses a running demo. With `--folder` besides, it takes every screen of that server, in both themes and
 * both languages and at the width of a phone too, to be looked at.
 */
type Screen = Readonly<{
  name: string;
  path: string;
  theme?: 'light' | 'dark';
  /** What to do before the picture is taken. */
  prepare?: (page: Page) => Promise<void>;
}>;

/** Opens the first row whose text matches. */
const open =
  (pattern = /./) =>
  async (page: Page): Promise<void> => {
    const list = page.url();
    await page.locator('main table tbody tr').filter({ hasText: pattern }).locator('a').first().click();
    await page.waitForURL((address) => address.pathname !== new URL(list).pathname);
    await page.getByRole('heading', { level: 1 }).waitFor();
  };

const screens: readonly Screen[] = [
  { name: 'groups', path: '/dlq/groups' },
  { name: 'message', path: '/dlq/messages?q=topic:payments.v1', prepare: open(/Declined/) },
  { name: 'redrive', path: '/dlq/redrives', prepare: open(/stopped/) },
  { name: 'saga', path: '/sagas?q=is:stuck', prepare: open() },
  { name: 'jobs', path: '/jobs/list' },
];

const all: readonly Screen[] = [
  ...screens,
  { name: 'inbox', path: '/inbox' },
  ...['messages', 'topics', 'redrives', 'redrives/new?q=topic:orders.v1'].map((path) => ({
    name: `dlq-${path.replaceAll(/\W+/g, '-')}`,
    path: `/dlq/${path}`,
  })),
  { name: 'group', path: '/dlq/groups', prepare: open() },
  { name: 'orders', path: '/outbox/orders' },
  { name: 'order', path: '/outbox/orders', prepare: open() },
  { name: 'destinations', path: '/outbox/destinations' },
  { name: 'ledger', path: '/outbox/ledger' },
  { name: 'job', path: '/jobs/list', prepare: open() },
  { name: 'queues', path: '/jobs/queues' },
  { name: 'schedules', path: '/jobs/schedules' },
  { name: 'sagas', path: '/sagas' },
  { name: 'workflows', path: '/sagas/workflows' },
  { name: 'activity', path: '/activity' },
  { name: 'system', path: '/system' },
];

/** Until the demo has failed in every way that it knows, and a redrive has ended. */
const demoMs = 150_000;

const images = fileURLToPath(new URL('../docs/images/', import.meta.url));

const [url, folder] = [option('--url'), option('--folder')];
const executablePath = findChromium();
if (executablePath === null) throw new Error('Chromium is not installed; set CHROMIUM_BIN');
const browser = await chromium.launch({
  executablePath,
  args: ['--font-render-hinting=none', ...(process.getuid?.() === 0 ? ['--no-sandbox'] : [])],
});
try {
  if (url === undefined || folder === undefined) await takeMain();
  else await takeAll(url, folder);
} finally {
  await browser.close();
}

async function takeMain(): Promise<void> {
  if (url !== undefined) return takeScreens(url);
  const dev = await startDevProcess();
  try {
    await new Promise((resolve) => setTimeout(resolve, demoMs));
    await takeScreens(dev.url);
  } finally {
    await dev.stop();
  }
}

async function takeScreens(base: string): Promise<void> {
  for (const screen of screens)
    for (const theme of ['light', 'dark'] as const)
      await take(base + screen.path, { ...screen, theme }, `${images}console-${screen.name}-${theme}.png`);
}

async function takeAll(base: string, into: string): Promise<void> {
  await mkdir(into, { recursive: true });
  for (const screen of all)
    for (const look of [
      { theme: 'light', language: 'en-GB', width: 1440 },
      { theme: 'dark', language: 'ja-JP', width: 1440 },
      { theme: 'light', language: 'en-GB', width: 390 },
    ] as const) {
      const file = `${into}/${screen.name}-${look.theme}-${look.width}.png`;
      await take(base + screen.path, { ...screen, ...look }, file).catch((error: unknown) =>
        process.stderr.write(`${file}: ${String(error)}\n`),
      );
    }
}

type Look = Screen & Readonly<{ language?: string; width?: number }>;

async function take(address: string, look: Look, file: string): Promise<void> {
  const { theme = 'light', language = 'en-GB', width = 1280, prepare } = look;
  const context = await browser.newContext({
    viewport: { width, height: 800 },
    colorScheme: theme,
    locale: language,
    timezoneId: 'UTC',
    reducedMotion: 'reduce',
  });
  try {
    const page = await context.newPage();
    await page.goto(address);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await prepare?.(page);
    // Panels of the page load one by one, and say so.
    await page.locator('[aria-busy="true"]').first().waitFor({ state: 'detached' });
    await page.locator('[data-live="live"]').first().waitFor();
    await writeFile(file, smallPng(await page.screenshot()));
  } finally {
    await context.close();
  }
}

function option(name: string): string | undefined {
  const at = process.argv.indexOf(name);
  return at < 0 ? undefined : process.argv[at + 1];
}
