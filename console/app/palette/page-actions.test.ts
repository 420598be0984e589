import { afterEach, expect, test } from 'vitest';
import { findPageActions } from './page-actions.ts';

afterEach(() => document.body.replaceChildren());

function pageWith(html: string): HTMLElement {
  document.body.innerHTML = html;
  return document.body;
}

test('buttons and links of the page are actions, with their keys and why they cannot be used', () => {
  const page = pageWith(`
    <button data-action aria-keyshortcuts="r">Retry <kbd aria-hidden="true">r</kbd></button>
    <button data-action aria-label="Close the preview">x</button>
    <button data-action aria-disabled="true" aria-describedby="why">Discard</button>
    <span id="why" hidden>this needs the permission x</span>
    <button>a part of another control</button>
    <a data-action href="/x">Plan   redrive</a>`);
  const found = findPageActions(page, null);
  expect(found.map(({ label, keys, disabledReason }) => ({ label, keys, disabledReason }))).toEqual([
    { label: 'Retry', keys: 'r', disabledReason: null },
    { label: 'Close the preview', keys: null, disabledReason: null },
    { label: 'Discard', keys: null, disabledReason: 'this needs the permission x' },
    { label: 'Plan redrive', keys: null, disabledReason: null },
  ]);
});

test('of rows only the one with the focus has its actions here', () => {
  const page = pageWith(`
    <table><tbody>
      <tr data-row-id="a"><td><a href="/a">a</a></td><td><button data-action>Pause a</button></td></tr>
      <tr data-row-id="b"><td><a href="/b">b</a></td><td><button data-action>Pause b</button></td></tr>
    </tbody></table>`);
  const labels = (focused: Element | null) => findPageActions(page, focused).map(({ label }) => label);
  expect(labels(null)).toEqual([]);
  expect(labels(page.querySelector('[href="/b"]'))).toEqual(['Pause b']);
});
