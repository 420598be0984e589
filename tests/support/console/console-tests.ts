import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { chromium, type Browser } from 'playwright-core';
import { findChromium } from './find-chromium.ts';

/**
 * Tests of the console in a real browser, against a real server:
 *
 *     describeConsole('the inbox', (browser) => {
 *       let system: ConsoleSystem;
 *       before(async () => (system = await startConsoleSystem({ kafka: 'local' })));
 *       after(() => system.drop());
 *
 *       test('shows what failed', async (t) => {
 *         await storeMessage(system.db);
 *         const page = await openConsole(t, { browser, system, path: '/inbox', theme: 'dark' });
 *         await page.getByRole('link', { name: 'processing failed' }).click();
 *         await page.getByRole('heading', { name: 'Message' }).waitFor();
 *         await assertAccessible(page);
 *       });
 *     });
 *
 * One server and one browser per file; every page has a profile of its own. Find elements by role and name, wait for
 * what is seen, never for a time. An error in the browser's console, an unhandled rejection, or a breach of the content
 * policy fails the test; `expectedErrors` names those that the test causes. A failed test leaves a picture, the document
 * and the log of the page in `.cache/console-failures`.
 *
 * Without Chromium (`CHROMIUM_BIN`, or one in the path) these tests are skipped with a warning; with `CI=true` that is a
 * failure.
 */
export function describeConsole(name: string, tests: (browser: () => Promise<Browser>) => void): void {
  const executablePath = findChromium();
  if (executablePath === null) {
    const missing = 'Chromium is not installed, so the console is not tested; set CHROMIUM_BIN';
    if (process.env['CI'] === 'true') void test(name, () => assert.fail(missing));
    else {
      process.stderr.write(`\nSKIPPED: ${name}: ${missing}\n`);
      void test(name, { skip: missing });
    }
    return;
  }
  void describe(name, () => {
    let launched: Promise<Browser> | undefined;
    after(async () => (await launched)?.close());
    tests(() => (launched ??= chromium.launch({ executablePath, args: argsFor(process.getuid?.()) })));
  });
}

/** Chromium refuses to run as root with its sandbox, and only then it goes without. */
function argsFor(userId: number | undefined): string[] {
  return ['--font-render-hinting=none', ...(userId === 0 ? ['--no-sandbox'] : [])];
}
