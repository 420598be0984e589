import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { allUnread, type Slice, type Unread } from '../../lib/live/live-events.ts';
import { asLoaded, mergeAnswer, mergeRows, shownRows, type LiveRows } from '../../lib/live/live-rows.ts';
import { useLiveReading, type LiveReading } from '../live/use-live-reading.ts';

/** What a list has to say to be live. */
export type LiveOptions<Row> = Readonly<{
  /** Whose changes may change the list. */
  slices: readonly Slice[];
  /** For lists of redrives. */
  areOwn?: LiveReading['areOwn'];
  idOf: (row: Row) => string;
  /**
   * Reads rows again, whether they match the filter or not; those that were deleted are missing in the result. Without
   * it rows that match no more keep their values.
   */
  load?: (rows: readonly Row[]) => Promise<readonly Row[]>;
}>;

/** For the table: how its rows have changed since they were loaded. */
export type ListLive<Row> = Readonly<{
  isGone: (row: Row) => boolean;
  /** How many match that are not shown. */
  fresh: number;
  /** Loads the list again, with them. */
  onLoad: () => void;
}>;

export type FirstPage<Row> = Readonly<{ rows: readonly Row[]; isWhole: boolean; total: number | null }>;

type Source<Row> = Readonly<{
  live: LiveOptions<Row> | undefined;
  /** As loaded; undefined before that. */
  rows: readonly Row[] | undefined;
  total: number | null;
  hasFailed: boolean;
  isRefetching: boolean;
  readFirst: () => Promise<FirstPage<Row>>;
  refetch: () => Promise<unknown>;
}>;

type LiveList<Row> = Readonly<{
  rows: readonly Row[] | undefined;
  error: Error | null;
  live: ListLive<Row> | undefined;
  /** Reads at once, whatever holds updates: after an own action. */
  readAgain: () => Promise<void>;
}>;

const maxLoaded = 50;

/** The rows of a list, kept up to date in place. */
export function useLiveRows<Row>(source: Source<Row>): LiveList<Row> {
  const { live, rows, isRefetching } = source;
  const [state, setState] = useState<LiveRows<Row>>(asLoaded);
  const [more, setMore] = useState(0);
  const [error, setError] = useState<Error | null>(null);
  const latest = useRef({ source, state });
  useEffect(() => {
    latest.current = { source, state };
  });
  const reset = useCallback(() => {
    setState(asLoaded());
    setMore(0);
    setError(null);
  }, []);
  useEffect(() => {
    if (!isRefetching) reset();
  }, [isRefetching, reset]);
  const turns = useRef({ begun: 0, shown: 0 });
  const read = async (unread: Unread): Promise<void> => {
    const { source: now } = latest.current;
    if (now.rows === undefined || now.rows.length === 0 || now.hasFailed) {
      await now.refetch();
      return;
    }
    turns.current.begun += 1;
    const turn = turns.current.begun;
    try {
      const found = await readRows(now, latest.current.state, unread);
      // The filter changed, the list was loaded again, or a later answer came first: this one is outdated.
      if (found === null || latest.current.source.rows !== now.rows || turn < turns.current.shown) return;
      turns.current.shown = turn;
      setState(found.state);
      setMore(found.more);
      setError(null);
    } catch (thrown) {
      setError(thrown instanceof Error ? thrown : new Error(String(thrown)));
    }
  };
  useLiveReading({
    slices: live?.slices ?? [],
    ...(live?.areOwn === undefined ? {} : { areOwn: live.areOwn }),
    read,
  });
  const idOf = live?.idOf;
  const shown = useMemo(
    () => (rows === undefined || idOf === undefined ? rows : shownRows(rows, state, idOf)),
    [rows, state, idOf],
  );
  const latestRead = useRef(read);
  useEffect(() => {
    latestRead.current = read;
  });
  const readAgain = useCallback(() => latestRead.current(allUnread), []);
  const onLoad = useCallback(() => void latest.current.source.refetch().then(reset), [reset]);
  return {
    rows: shown,
    error,
    live:
      live === undefined
        ? undefined
        : {
            isGone: (row) => state.gone.has(live.idOf(row)),
            fresh: Math.max(state.fresh.size, more),
            onLoad,
          },
    readAgain,
  };
}

async function readRows<Row>(
  { live, rows, total, readFirst }: Source<Row>,
  before: LiveRows<Row>,
  { ids }: Unread,
): Promise<Readonly<{ state: LiveRows<Row>; more: number }> | null> {
  if (live === undefined || rows === undefined) return null;
  const { idOf, load } = live;
  const first = await readFirst();
  let state = mergeAnswer(before, rows, first, idOf);
  const isNew = first.rows.length > 0 && state.fresh.size === first.rows.length;
  const more = isNew && total !== null && first.total !== null && total >= 0 ? first.total - total : 0;
  const seen = new Set(first.rows.map(idOf));
  const isUnread = (id: string): boolean => ids.has(id) || (state.gone.has(id) && !before.gone.has(id));
  const asked = shownRows(rows, state, idOf)
    .filter((row) => isUnread(idOf(row)) && !seen.has(idOf(row)))
    .slice(0, maxLoaded);
  if (load !== undefined && asked.length > 0)
    state = mergeRows(state, rows, { ids: asked.map(idOf), rows: await load(asked) }, idOf);
  return { state, more };
}
