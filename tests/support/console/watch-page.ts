import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';

const failures = fileURLToPath(new URL('../../../.cache/console-failures/', import.meta.url));

/** Runs in the page. */
const tellBreaches = `addEventListener('securitypolicyviolation', (breach) =>
  noteBreach(breach.violatedDirective + ' ' + breach.blockedURI + ' ' + breach.sourceFile))`;

export type PageWatch = Readonly<{
  assertNoErrors(): void;
  /** Keeps a picture, the document and the log; returns the folder. */
  save(name: string): Promise<string>;
}>;

/** Collects what a person with the developer tools open would see in red. */
export async function watchPage(page: Page, expected: readonly RegExp[]): Promise<PageWatch> {
  const log: string[] = [];
  const errors: string[] = [];
  const note = (kind: string, text: string): void => {
    log.push(`${kind}: ${text}`);
    const isError = ['error', 'rejection', 'policy'].includes(kind);
    if (isError && !expected.some((pattern) => pattern.test(text))) errors.push(`${kind}: ${text}`);
  };
  page.on('console', (message) => note(message.type(), `${message.text()} (${message.location().url})`));
  page.on('pageerror', (error) => note('rejection', error.stack ?? error.message));
  page.on('crash', () => note('error', 'the page crashed'));
  await page.exposeFunction('noteBreach', (text: string) => note('policy', text));
  await page.addInitScript({ content: tellBreaches });
  return {
    assertNoErrors: () => assert.deepEqual(errors, []),
    async save(name) {
      const folder = join(failures, name.replaceAll(/[^\w]+/g, '-').slice(0, 80));
      await mkdir(folder, { recursive: true });
      await page.screenshot({ path: join(folder, 'page.png'), timeout: 10_000 }).catch(() => {});
      await writeFile(join(folder, 'page.html'), await page.content().catch(() => 'no document'));
      await writeFile(join(folder, 'log.txt'), `${page.url()}\n${log.join('\n')}\n`);
      return folder;
    },
  };
}
