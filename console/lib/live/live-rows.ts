/**
 * What has happened to the rows of a list since it was loaded. The list stays as it is: rows change in place, rows that
 * match no more stay, and new ones are only counted, until the list is loaded again.
 */
export type LiveRows<Row> = Readonly<{
  /** By id, the rows that changed. */
  changed: ReadonlyMap<string, Row>;
  /** Shown, but they match no more. */
  gone: ReadonlySet<string>;
  /** They match, but are not shown. */
  fresh: ReadonlySet<string>;
}>;

export function asLoaded<Row>(): LiveRows<Row> {
  return { changed: new Map(), gone: new Set(), fresh: new Set() };
}

/** The beginning of the list as it is now; `isWhole` if nothing follows. */
export type Answer<Row> = Readonly<{ rows: readonly Row[]; isWhole: boolean }>;

type IdOf<Row> = (row: Row) => string;

/** The result is the same object, and so is each row, unless something is different. */
export function mergeAnswer<Row>(
  live: LiveRows<Row>,
  shown: readonly Row[],
  answer: Answer<Row>,
  idOf: IdOf<Row>,
): LiveRows<Row> {
  const now = new Map(answer.rows.map((row) => [idOf(row), row]));
  const ids = shown.map(idOf);
  const known = new Set(ids);
  const until = answer.isWhole ? ids.length - 1 : ids.findLastIndex((id) => now.has(id));
  const gone = new Set(ids.filter((id, i) => !now.has(id) && (i <= until || live.gone.has(id))));
  const fresh = new Set([...now.keys()].filter((id) => !known.has(id)));
  const patched = patch(live, shown, now, idOf);
  const hasSame = patched === live.changed && isSameSet(gone, live.gone) && isSameSet(fresh, live.fresh);
  return hasSame ? live : { changed: patched, gone, fresh };
}

/** Single rows as they are now, whether they match or not. What is missing was deleted. */
export function mergeRows<Row>(
  live: LiveRows<Row>,
  shown: readonly Row[],
  asked: Readonly<{ ids: readonly string[]; rows: readonly Row[] }>,
  idOf: IdOf<Row>,
): LiveRows<Row> {
  const now = new Map(asked.rows.map((row) => [idOf(row), row]));
  const known = new Set(shown.map(idOf));
  const missing = asked.ids.filter((id) => known.has(id) && !now.has(id));
  const gone = new Set([...live.gone, ...missing]);
  const patched = patch(live, shown, now, idOf);
  if (patched === live.changed && gone.size === live.gone.size) return live;
  return { ...live, changed: patched, gone };
}

export function shownRows<Row>(
  rows: readonly Row[],
  { changed }: LiveRows<Row>,
  idOf: IdOf<Row>,
): readonly Row[] {
  return changed.size === 0 ? rows : rows.map((row) => changed.get(idOf(row)) ?? row);
}

function patch<Row>(
  { changed }: LiveRows<Row>,
  shown: readonly Row[],
  now: ReadonlyMap<string, Row>,
  idOf: IdOf<Row>,
): ReadonlyMap<string, Row> {
  const different = shown.flatMap((loaded) => {
    const id = idOf(loaded);
    const next = now.get(id);
    const before = changed.get(id) ?? loaded;
    if (next === undefined || isSame(before, next)) return [];
    return [[id, isSame(loaded, next) ? loaded : next] as const];
  });
  return different.length === 0 ? changed : new Map([...changed, ...different]);
}

/** Both came as JSON, from the same server. */
function isSame(some: unknown, other: unknown): boolean {
  return some === other || JSON.stringify(some) === JSON.stringify(other);
}

function isSameSet(some: ReadonlySet<string>, other: ReadonlySet<string>): boolean {
  return some.size === other.size && [...some].every((id) => other.has(id));
}
