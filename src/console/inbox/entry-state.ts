import type { Arrivals } from '../../kernel/inbox/inbox-group.ts';

/**
 * An entry is open until somebody decides: it is done when its items are gone, done by hand with a reason, or snoozed
 * until it grows. It comes back by itself:
 *
 *   open    --its items are gone----------------> gone (done by itself)
 *   gone    --there are items again-------------> open, `back`
 *   open    --done by hand, with a reason-------> done
 *   done    --items arrived after that, or more-> open, `back`
 *   open    --snoozed at a count----------------> snoozed
 *   snoozed --more items than that--------------> open
 *
 * Nothing is written when an entry comes back: the state follows from the items and from what was decided.
 */
export const entryStates = ['open', 'snoozed', 'done'] as const;
export type EntryState = (typeof entryStates)[number];

/** What people decided about an entry. At most one of `snooze` and `done`. */
export type Decision = Readonly<{
  snooze: Readonly<{ count: number }> | null;
  /** `count`: how many items there were, or the fewest since. */
  done: Readonly<{ count: number; at: Date }> | null;
}>;

export type Items = Readonly<{ count: number; newestAt: Date | null }>;

export function stateOf({ count, newestAt }: Items, { snooze, done }: Decision): EntryState {
  if (done !== null && count <= done.count && (newestAt === null || newestAt <= done.at)) return 'done';
  return snooze !== null && count <= snooze.count ? 'snoozed' : 'open';
}

export const badges = ['new', 'back', 'growing'] as const;
export type Badge = (typeof badges)[number];

const hourMs = 3_600_000;
/** For how long an entry that came back says so. */
const backMs = 24 * hourMs;

export type Sightings = Readonly<{
  /** When the inbox saw the entry first; null if it has not noted it yet. */
  firstSeenAt: Date | null;
  /** Since when its items are gone, as far as the inbox has noted; they may be there again. */
  goneAt: Date | null;
  /** When it was noted that they were there again. */
  backAt: Date | null;
}>;

export function badgesOf(
  entry: Items & Readonly<{ oldestAt: Date | null; firstAt: Date | null; arrivals: Arrivals | null }>,
  { seen, decision, now }: Readonly<{ seen: Sightings; decision: Decision; now: Date }>,
): readonly Badge[] {
  const isWithin = (at: Date | null, ms: number): boolean =>
    at !== null && now.getTime() - at.getTime() <= ms;
  const began = [entry.firstAt, seen.firstSeenAt, entry.oldestAt].filter((at) => at !== null);
  const first = began.length === 0 ? null : new Date(Math.min(...began.map(Number)));
  const isBack =
    seen.goneAt !== null ||
    isWithin(seen.backAt, backMs) ||
    (decision.done !== null && stateOf(entry, { ...decision, snooze: null }) === 'open');
  return [
    ...(isBack ? (['back'] as const) : isWithin(first, hourMs) ? (['new'] as const) : []),
    ...(growthOf(entry.arrivals) === null ? [] : (['growing'] as const)),
  ];
}

export type Growth = Readonly<{
  count: number;
  minutes: number;
  /** How many times the usual number; null if nothing was usual. */
  factor: number | null;
}>;

/** Fewer arrivals than these are no growth. */
const growingFrom = 10;

/** Null unless at least ten items arrived, twice as many as usual. */
export function growthOf(arrivals: Arrivals | null): Growth | null {
  if (arrivals === null) return null;
  const { recent, minutes, usual } = arrivals;
  if (recent < growingFrom || recent < 2 * usual) return null;
  return { count: recent, minutes, factor: usual > 0 ? recent / usual : null };
}
