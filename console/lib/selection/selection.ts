/**
 * What is selected in a list. `allMatching` is everything that matched the filter at one moment, whether loaded or not;
 * it never acts itself but opens a plan.
 */
export type Selection =
  | Readonly<{ kind: 'none' }>
  | Readonly<{ kind: 'some'; ids: ReadonlySet<string> }>
  | Readonly<{ kind: 'allMatching'; filter: string; frozenAt: string; minus: ReadonlySet<string> }>;

export const nothingSelected: Selection = { kind: 'none' };

export function isSelected(selection: Selection, id: string): boolean {
  if (selection.kind === 'none') return false;
  return selection.kind === 'some' ? selection.ids.has(id) : !selection.minus.has(id);
}

export function select(selection: Selection, ids: Iterable<string>): Selection {
  if (selection.kind === 'allMatching') return { ...selection, minus: without(selection.minus, ids) };
  return some(withAll(idsOf(selection), ids));
}

export function deselect(selection: Selection, ids: Iterable<string>): Selection {
  if (selection.kind === 'allMatching') return { ...selection, minus: withAll(selection.minus, ids) };
  return some(without(idsOf(selection), ids));
}

export function toggle(selection: Selection, id: string): Selection {
  return isSelected(selection, id) ? deselect(selection, [id]) : select(selection, [id]);
}

export function selectAllMatching(filter: string, frozenAt: string): Selection {
  return { kind: 'allMatching', filter, frozenAt, minus: new Set() };
}

/** Of `total` that match; null if that is not known. */
export function countSelected(selection: Selection, total: number | null): number | null {
  if (selection.kind === 'none') return 0;
  if (selection.kind === 'some') return selection.ids.size;
  return total === null ? null : Math.max(0, total - selection.minus.size);
}

/** Whether all, some or none of the rows on screen are selected. */
export function shownState(selection: Selection, shown: readonly string[]): 'none' | 'some' | 'all' {
  const count = shown.filter((id) => isSelected(selection, id)).length;
  if (count === 0) return 'none';
  return count === shown.length ? 'all' : 'some';
}

function idsOf(selection: Exclude<Selection, { kind: 'allMatching' }>): ReadonlySet<string> {
  return selection.kind === 'some' ? selection.ids : new Set();
}

function some(ids: ReadonlySet<string>): Selection {
  return ids.size === 0 ? nothingSelected : { kind: 'some', ids };
}

/** Selects the rows on screen, or deselects them if all are selected. */
export function toggleShown(selection: Selection, shown: readonly string[]): Selection {
  return shownState(selection, shown) === 'all' ? deselect(selection, shown) : select(selection, shown);
}

function withAll(before: ReadonlySet<string>, ids: Iterable<string>): ReadonlySet<string> {
  return new Set([...before, ...ids]);
}

function without(before: ReadonlySet<string>, ids: Iterable<string>): ReadonlySet<string> {
  const gone = new Set(ids);
  return new Set([...before].filter((id) => !gone.has(id)));
}
