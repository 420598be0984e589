import assert from 'node:assert/strict';
import axe from 'axe-core';
import type { AxeResults, RunOptions } from 'axe-core';
import type { Page } from 'playwright-core';

const rules: RunOptions = {
  runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
  resultTypes: ['violations'],
};

/** No serious or critical finding of axe on the page as it is now. */
export async function assertAccessible(page: Page): Promise<void> {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate<AxeResults>(`axe.run(${JSON.stringify(rules)})`);
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  const told = serious.flatMap(({ id, help, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${help}: ${target.join(' ')}: ${failureSummary}`),
  );
  assert.deepEqual(told, []);
}
