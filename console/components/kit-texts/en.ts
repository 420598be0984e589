import { formatCount } from '../../lib/sizes.ts';
import type { Texts } from '../../lib/text/catalogue.ts';

export const en = {
  ago: (age: string) => `${age} ago`,
  in: (age: string) => `in ${age}`,
  copy: 'Copy',
  copied: 'Copied',
  copyFailed: 'Could not copy',
  copyThing: (what: string) => `Copy ${what}`,
  close: 'Close',
  cancel: 'Cancel',
  dismiss: 'Dismiss',
  undo: 'Undo',
  retry: 'Retry',
  reason: 'Reason',
  reasonHint: 'Stored with the action, for whoever reads it later.',
  required: 'required',
  typeToConfirm: (text: string) => `Type ${text} to confirm`,
  working: 'Working…',
  loading: 'Loading',
  refreshing: 'Refreshing',
  failedToLoad: 'Loading failed',
  timedOut: 'The server took too long. A shorter time range is faster.',
  stillShown: 'What was loaded before is still shown.',
  code: 'Code',
  requestId: 'Request',
  nothing: 'Nothing here',
  noMatch: 'Nothing matches this filter',
  notSetUp: 'Not set up',
  removeTerm: (term: string) => `Remove ${term}`,
  clearFilter: 'Clear filter',
  filter: 'Filter',
  filters: 'Filters',
  filterHint: (example: string, hasText: boolean) =>
    hasText ? `Qualifiers such as ${example}, or words` : `Qualifiers such as ${example}`,
  applyFilters: 'Apply',
  any: 'Any',
  completions: 'Completions',
  occurrences: (count: number) => formatCount(count),
  unknownQualifier: (term: string, allowed: string) =>
    `${term}: unknown qualifier. Use one of ${allowed}, or put it into quotation marks to search for it.`,
  missingValue: (term: string, allowed: string) =>
    `${term} needs a value${allowed === '' ? '' : `: ${allowed}`}`,
  unknownChoice: (term: string, allowed: string) => `${term}: the value must be ${allowed}`,
  wrongTime: (term: string, allowed: string) => `${term}: write an age or an ISO date, such as ${allowed}`,
  notExcludable: (term: string) => `${term}: this cannot be excluded`,
  givenTwice: (term: string) => `${term}: this can be given only once`,
  tooMany: (term: string, allowed: string) => `${term}: at most ${allowed} values can be excluded`,
  noText: (term: string) => `${term}: this list has no search by words`,
  selectRow: (name: string) => `Select ${name}`,
  selectShown: 'Select all rows shown',
  shownSelected: (count: number) => `All ${formatCount(count)} shown are selected.`,
  selectMatching: (count: number | null) =>
    count === null ? 'Select all that match' : `Select all ${formatCount(count)} that match`,
  matchingSelected: (count: number | null) =>
    count === null ? 'All that match are selected.' : `All ${formatCount(count)} that match are selected.`,
  someSelected: (count: number) => `${formatCount(count)} selected`,
  clearSelection: 'Clear selection',
  loadMore: (count: number) => `Load ${formatCount(count)} more`,
  shownOf: (shown: number, total: number | null) =>
    total === null
      ? `${formatCount(shown)} shown`
      : `${formatCount(shown)} of ${total < 0 ? 'about ' : ''}${formatCount(Math.abs(total))}`,
  limitReached: (limit: number) => `${formatCount(limit)} rows are shown. Narrow the filter to see others.`,
  newRows: (count: number) => `${formatCount(count)} new`,
  goneRow: 'no longer matches the filter',
  rowKeys:
    'Keys: j and k move, Enter opens, Space previews, x selects, a selects all shown, Escape goes back.',
  columns: 'Columns',
  moveColumn: (name: string) => `Move ${name} to the front`,
  resizePane: 'Resize the pane',
  bytesShown: (shown: string, all: string) => `The first ${shown} of ${all} are shown.`,
  asStored: 'As stored',
  formatted: 'Formatted',
  hex: 'Hex',
  noValue: 'No value (null)',
  emptyValue: 'Empty (0 bytes)',
  notJson: (line: number, column: number) => `Not valid JSON: line ${line}, column ${column}.`,
  duplicateKeys: (keys: string) => `Duplicate keys: ${keys}. Most programs read only the last.`,
  invalidUtf8: (count: number, first: number) =>
    count === 1
      ? `One byte is not valid UTF-8, at ${formatCount(first)}. It is shown as ⟨hex⟩.`
      : `${formatCount(count)} bytes are not valid UTF-8, the first at ${formatCount(first)}. They are shown as ⟨hex⟩.`,
  download: 'Download',
  payload: 'Payload',
  libraryFrames: (count: number) => `${formatCount(count)} frames of libraries`,
  stack: 'Stack',
  find: 'Find',
  view: 'View',
  actions: 'More actions',
  lastHours: (count: number, peak: number) =>
    `${formatCount(count)} in 24 hours, at most ${formatCount(peak)} in one hour`,
} as const satisfies Texts;
