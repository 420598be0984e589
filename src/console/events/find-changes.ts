import type { ChangedRow, Changes, Seen } from '../../platform/work/changes/read-changes.ts';
import type { SliceChange } from './change-log.ts';

/** Connections report their statistics within 10 s; a change that was found is not expected any longer than that. */
const reportedWithinMs = 15_000;

export type ChangeFinder = Readonly<{
  /** Null before the first call, and after `reset`. */
  since(): Seen | null;
  add(changes: Changes, nowMs: number): ReadonlyMap<string, SliceChange>;
  reset(): void;
}>;

/**
 * Turns what was read into changes. Rows are those among the ones that people look at. The statistics of PostgreSQL count
 * every change; where they count more than was found, the change is not complete: something else was changed, deleted or
 * archived. They come later than the rows, so rows that were found earlier are set off against them.
 */
export function createChangeFinder(): ChangeFinder {
  let since: Seen | null = null;
  /** Found again while a transaction of that time runs. By slice and id, the transaction that wrote the row. */
  let reported = new Map<string, string>();
  const credit = new Map<string, { rows: number; atMs: number }>();

  const isNew = ({ slice, id, xid }: ChangedRow): boolean => reported.get(`${slice} ${id}`) !== xid;

  return {
    since: () => since,
    add({ seen, rows }, nowMs) {
      const before = since;
      since = seen;
      const found = new Map<string, Map<string, string>>();
      for (const row of rows.filter(isNew)) {
        const ofSlice = found.get(row.slice) ?? new Map<string, string>();
        found.set(row.slice, ofSlice.set(row.id, row.name));
      }
      reported = new Map(rows.map(({ slice, id, xid }) => [`${slice} ${id}`, xid]));
      const result = new Map<string, SliceChange>();
      for (const slice of Object.keys(seen.activity)) {
        const counted =
          Number(seen.activity[slice]) - Number(before?.activity[slice] ?? seen.activity[slice]);
        const here = found.get(slice) ?? new Map<string, string>();
        const isComplete = settle(credit, slice, { found: here.size, counted, nowMs });
        if (here.size > 0 || !isComplete) result.set(slice, { rows: here, isComplete });
      }
      return result;
    },
    reset() {
      since = null;
      reported = new Map();
      credit.clear();
    },
  };
}

/** Whether the rows that were found lately account for what the statistics count. */
function settle(
  credit: Map<string, { rows: number; atMs: number }>,
  slice: string,
  { found, counted, nowMs }: Readonly<{ found: number; counted: number; nowMs: number }>,
): boolean {
  const known = credit.get(slice);
  const rest = known !== undefined && nowMs - known.atMs < reportedWithinMs ? known.rows : 0;
  const left = rest + found - counted;
  const atMs = found > 0 ? nowMs : (known?.atMs ?? nowMs);
  credit.set(slice, { rows: Math.max(left, 0), atMs });
  return left >= 0;
}
