import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  countSelected,
  deselect,
  isSelected,
  nothingSelected,
  select,
  selectAllMatching,
  shownState,
  toggle,
  type Selection,
} from './selection.ts';

const everything = ['a', 'b', 'c', 'd', 'e'];
const ids = fc.subarray(everything);
const selections: fc.Arbitrary<Selection> = fc.oneof(
  fc.constant(nothingSelected),
  ids.map((some) => select(nothingSelected, some)),
  ids.map((minus) => deselect(selectAllMatching('status:DEAD', '2026-11-19T12:00:00Z'), minus)),
);
const chosen = (selection: Selection) => everything.filter((id) => isSelected(selection, id));

test('selecting and deselecting are union and difference, however much is selected', () => {
  fc.assert(
    fc.property(selections, ids, (selection, some) => {
      const before = chosen(selection);
      expect(new Set(chosen(select(selection, some)))).toEqual(new Set([...before, ...some]));
      expect(chosen(deselect(selection, some))).toEqual(before.filter((id) => !some.includes(id)));
    }),
  );
});

test('toggling twice changes nothing', () => {
  fc.assert(
    fc.property(selections, fc.constantFrom(...everything), (selection, id) => {
      expect(isSelected(toggle(selection, id), id)).toBe(!isSelected(selection, id));
      expect(chosen(toggle(toggle(selection, id), id))).toEqual(chosen(selection));
    }),
  );
});

test('the count is that of the rows', () => {
  fc.assert(
    fc.property(selections, (selection) => {
      expect(countSelected(selection, everything.length)).toBe(chosen(selection).length);
    }),
  );
  expect(countSelected(selectAllMatching('', '2026-11-19T12:00:00Z'), null)).toBeNull();
});

test('nothing selected has one form', () => {
  expect(deselect(select(nothingSelected, ['a']), ['a'])).toBe(nothingSelected);
});

test('the header knows whether all, some or none of the rows on screen are selected', () => {
  const selection = select(nothingSelected, ['a', 'b']);
  expect(shownState(selection, ['a', 'b'])).toBe('all');
  expect(shownState(selection, ['a', 'c'])).toBe('some');
  expect(shownState(selection, ['c'])).toBe('none');
  expect(shownState(nothingSelected, [])).toBe('none');
});
