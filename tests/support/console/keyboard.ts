import assert from 'node:assert/strict';
import type { Locator, Page } from 'playwright-core';

/** More than any page has. */
const maxSteps = 120;

/** Presses Tab until the focus is on the element, as somebody without a mouse does. */
export async function tabTo(page: Page, element: Locator): Promise<void> {
  await element.waitFor();
  for (let step = 0; step < maxSteps; step += 1) {
    if (await element.evaluate((one) => one === one.ownerDocument.activeElement)) return;
    await page.keyboard.press('Tab');
  }
  assert.fail(`${String(element)} was not reached by Tab`);
}

/** Replaces what a field holds. */
export async function typeInto(page: Page, field: Locator, text: string): Promise<void> {
  await tabTo(page, field);
  await page.keyboard.press('Control+A');
  if (text === '') await page.keyboard.press('Delete');
  else await page.keyboard.insertText(text);
}

/** Replaces the text of an editor by keys. To fill it is what an input method does, after which the browser sets styles. */
export async function retype(page: Page, editor: Locator, text: string): Promise<void> {
  await editor.click();
  await page.keyboard.press('Control+A');
  await page.keyboard.press('Delete');
  await page.keyboard.insertText(text);
}

/** Moves the cursor of a list to the row that has the text. */
export async function moveToRow(page: Page, text: RegExp): Promise<void> {
  const row = page.getByRole('row', { name: text });
  await row.waitFor();
  if ((await page.locator('[data-row-link]:focus').count()) === 0)
    await tabTo(page, page.locator('[data-row-link]').first());
  for (let step = 0; step < maxSteps; step += 1) {
    if ((await row.locator(':focus').count()) > 0) return;
    await page.keyboard.press('j');
  }
  assert.fail(`no row with ${String(text)}`);
}
