import { mkdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { chromium, type Page } from 'playwright-core';
import { findChromium } from '../tests/support/console/find-chromium.ts';
import { startDevProcess } from '../tests/support/dev-process.ts';

/**
 * Makes docs/images/console-*.png: starts `npm start`, lets its demo fail for a while, and takes a picture of the main
 * screens in a real Chromium. `node_modules/.bin/node tools/console-pictures.ts`, whenever a screen changes.
 *
 * With `--url` and `--folder` it takes every screen of a running server instead, in both themes and both
 * languages and at the width of a phone too, to be looked at.
 */
type Screen = Readonly<{
  name: string;
  path: string;
  theme?: 'light' | 'dark';
  /** What to do before the picture is taken. */
  prepare?: (page: Page) => Promise<void>;
}>;

const openFirst = async (page: Page): Promise<void> => {
  const name = await page.getByRole('heading', { level: 1 }).textContent();
  await page.locator('main table tbody a').first().click();
  await page
    .getByRole('heading', { level: 1 })
    .filter({ hasNotText: name ?? '' })
    .waitFor();
};

const screens: readonly Screen[] = [
  { name: 'inbox', path: '/inbox' },
  { name: 'groups', path: '/dlq/groups' },
  { name: 'message', path: '/dlq/messages?q=status:PENDING', prepare: openFirst },
  { name: 'redrive', path: '/dlq/redrives', prepare: openFirst },
  { name: 'saga', path: '/sagas?q=is:stuck', theme: 'dark', prepare: openFirst },
];

const all: readonly Screen[] = [
  ...screens,
  ...['messages', 'topics', 'redrives', 'redrives/new?q=topic:orders.v1'].map((path) => ({
    name: `dlq-${path.replaceAll(/\W+/g, '-')}`,
    path: `/dlq/${path}`,
  })),
  { name: 'group', path: '/dlq/groups', prepare: openFirst },
  { name: 'orders', path: '/outbox/orders' },
  { name: 'order', path: '/outbox/orders', prepare: openFirst },
  { name: 'destinations', path: '/outbox/destinations' },
  { name: 'ledger', path: '/outbox/ledger' },
  { name: 'jobs', path: '/jobs/list' },
  { name: 'job', path: '/jobs/list', prepare: openFirst },
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
  if (url === undefined) await takeMain();
  else await takeAll(url, folder ?? images);
} finally {
  await browser.close();
}

async function takeMain(): Promise<void> {
  const dev = await startDevProcess();
  try {
    await new Promise((resolve) => setTimeout(resolve, demoMs));
    for (const screen of screens)
      await take(`${dev.url}${screen.path}`, screen, `${images}console-${screen.name}.png`);
  } finally {
    await dev.stop();
  }
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
    await page.screenshot({ path: file });
  } finally {
    await context.close();
  }
}

function option(name: string): string | undefined {
  const at = process.argv.indexOf(name);
  return at < 0 ? undefined : process.argv[at + 1];
}
