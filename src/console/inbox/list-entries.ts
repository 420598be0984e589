import type { Principal } from '../../kernel/access/principal.ts';
import {
  inboxSlices,
  type InboxGroup,
  type InboxKind,
  type InboxSlice,
} from '../../kernel/inbox/inbox-group.ts';
import type { Masks } from '../../kernel/protect/protection.ts';
import { readClock } from '../../platform/postgres/read-clock.ts';
import type { InboxPart } from '../../platform/work/inbox-part.ts';
import { listGone, readEntries, type StoredEntry } from './entries-table.ts';
import { entryId } from './entry-id.ts';
import { badgesOf, stateOf, type Badge, type EntryState } from './entry-state.ts';
import { isVisible, kindsFor } from './inbox-scope.ts';
import { compareRanked, rankOf, type Rank } from './rank.ts';
import { readGroups, withinTime, type PartDeps } from './read-groups.ts';

export type InboxDeps = PartDeps & Readonly<{ masks: Readonly<Record<InboxSlice, Masks>> }>;

export type InboxFilter = Readonly<{
  state: EntryState;
  kind?: InboxKind | undefined;
  slice?: InboxSlice | undefined;
  /** Subjects; null: nobody. Undefined: whoever has it. */
  assignees?: readonly (string | null)[] | undefined;
  /** Looked for in what is shown. */
  text?: string | undefined;
}>;

/** An entry as it stands now. */
export type Entry = Readonly<{
  id: string;
  /** Of an entry whose items are gone, what was noted last. */
  group: InboxGroup;
  /** Masked, and no longer than it is shown. */
  title: string;
  part: InboxPart;
  state: EntryState;
  rank: Rank;
  badges: readonly Badge[];
  stored: StoredEntry | null;
  trend: readonly number[] | null;
  /** The time of the database when its items were read. */
  now: Date;
}>;

export type InboxList = Readonly<{
  entries: readonly Entry[];
  /** Entries that match and are not in the answer. */
  more: number;
  counts: Readonly<Record<EntryState, number>>;
  bySlice: Readonly<Record<InboxSlice, number>>;
  unavailable: readonly InboxSlice[];
  partial: readonly InboxSlice[];
  asOf: Date;
}>;

const doneHours = 24;
/** Of those that are gone; the newest come first. */
const maxGone = 2000;
const titleLength = 200;

export async function listEntries(
  deps: InboxDeps,
  principal: Principal,
  { filter, limit }: Readonly<{ filter: InboxFilter; limit: number }>,
): Promise<InboxList> {
  const asOf = await readClock(deps.db);
  const read = await readGroups(deps, (part) => kindsFor(part, principal));
  const groups = read.groups.map((group) => ({ id: entryId(group), group }));
  const stored = await readEntries(
    deps.db,
    groups.map(({ id }) => id),
  );
  const live = groups.map(({ id, group }) =>
    entryOf(deps, { id, group, part: group.part, stored: stored.get(id) ?? null, now: asOf }),
  );
  const present = new Set(live.map(({ id }) => id));
  const gone = (await goneEntries(deps, principal, asOf)).filter(
    ({ id, group }) => !present.has(id) && !read.unavailable.includes(group.slice),
  );
  const all = [...live.filter((entry) => isShown(entry, asOf)), ...gone];
  const matching = all
    .filter((entry) => matches(entry, filter))
    .toSorted(filter.state === 'done' ? byEnd : compareRanked);
  return {
    entries: await withTrends(deps, matching.slice(0, limit)),
    more: Math.max(0, matching.length - limit),
    counts: countBy(all),
    bySlice: countSlices(all),
    unavailable: read.unavailable,
    partial: read.partial,
    asOf,
  };
}

/** What was done by hand is listed for a day; its items are still there. */
function isShown({ state, stored }: Entry, now: Date): boolean {
  if (state !== 'done') return true;
  return stored?.doneAt != null && now.getTime() - stored.doneAt.getTime() <= doneHours * 3_600_000;
}

type EntryInput = Readonly<{
  id: string;
  group: InboxGroup;
  part: InboxPart;
  stored: StoredEntry | null;
  now: Date;
}>;

const undecided = { snooze: null, done: null };
const unseen = { firstSeenAt: null, goneAt: null, backAt: null };

export function entryOf(
  { masks }: Pick<InboxDeps, 'masks'>,
  { id, group, part, stored, now }: EntryInput,
): Entry {
  // What was decided about items that are gone says nothing about new ones.
  const isBack = stored !== null && stored.seen.goneAt !== null;
  const decision = stored === null || isBack ? undecided : stored.decision;
  return {
    id,
    group,
    part,
    stored,
    title: masks[group.slice].text(group.title).slice(0, titleLength).toWellFormed(),
    state: stateOf(group, decision),
    rank: rankOf(group, now),
    badges: badgesOf(group, { seen: stored?.seen ?? unseen, decision, now }),
    trend: group.trend ?? null,
    now,
  };
}

async function goneEntries(
  { db, parts, masks }: InboxDeps,
  principal: Principal,
  now: Date,
): Promise<readonly Entry[]> {
  const rows = await listGone(db, doneHours, maxGone);
  return rows.flatMap((stored) => {
    const part = parts.find(({ slice, kinds }) => slice === stored.slice && kinds[stored.kind] !== undefined);
    const filter = part === undefined ? undefined : kindsFor(part, principal).get(stored.kind);
    if (part === undefined || filter === undefined || !isVisible(filter, stored.names)) return [];
    return [goneEntry({ masks }, { part, stored, now })];
  });
}

/** An entry without items is done, whatever was decided about it before. */
export function goneEntry(
  deps: Pick<InboxDeps, 'masks'>,
  { part, stored, now }: Readonly<{ part: InboxPart; stored: StoredEntry; now: Date }>,
): Entry {
  const { id, kind, slice, title, place, names, link, oldestAt, newestAt } = stored;
  const group: InboxGroup = {
    kind,
    slice,
    title,
    place,
    names,
    link,
    oldestAt,
    newestAt,
    key: [],
    count: 0,
    firstAt: null,
    arrivals: null,
    danger: null,
    verb: { action: 'open', permission: part.kinds[kind]?.permission ?? 'console:inbox:view' },
  };
  return { ...entryOf(deps, { id, group, part, stored, now }), state: 'done', badges: [] };
}

function matches(entry: Entry, { state, kind, slice, assignees, text }: InboxFilter): boolean {
  const { group, stored, title } = entry;
  if (entry.state !== state) return false;
  if (kind !== undefined && group.kind !== kind) return false;
  if (slice !== undefined && group.slice !== slice) return false;
  if (assignees !== undefined && !assignees.includes(stored?.owner?.subject ?? null)) return false;
  if (text === undefined) return true;
  // Only what is shown to everybody who sees the entry: keys may be covered.
  const { ordering_key: _key, ...place } = group.place;
  const shown = [title, ...Object.values(place).map(String)].join('\n').toLowerCase();
  return shown.includes(text.toLowerCase());
}

const endOf = ({ stored }: Entry): number => Number(stored?.seen.goneAt ?? stored?.doneAt ?? 0);

function byEnd(one: Entry, other: Entry): number {
  return endOf(other) - endOf(one) || (one.id < other.id ? -1 : 1);
}

/** A trend that cannot be read in time is missing; the entries are not. */
async function withTrends({ db, onError }: InboxDeps, entries: readonly Entry[]): Promise<readonly Entry[]> {
  const unread = entries.filter(({ group }) => group.trend === undefined && group.count > 0);
  const trends = new Map<string, readonly number[] | null>();
  for (const [part, own] of Map.groupBy(unread, (entry) => entry.part)) {
    const { trends: readTrends } = part;
    if (readTrends === undefined) continue;
    try {
      const groups = own.map(({ group }) => group);
      const found = await withinTime(db, (tx) => readTrends(tx, groups));
      own.forEach(({ id }, n) => trends.set(id, found[n] ?? null));
    } catch (error) {
      onError(part.slice, error);
    }
  }
  return entries.map((entry) => ({ ...entry, trend: entry.trend ?? trends.get(entry.id) ?? null }));
}

function countBy(entries: readonly Entry[]): Record<EntryState, number> {
  const counts = { open: 0, snoozed: 0, done: 0 };
  for (const { state } of entries) counts[state] += 1;
  return counts;
}

function countSlices(entries: readonly Entry[]): Readonly<Record<InboxSlice, number>> {
  const counts = new Map<InboxSlice, number>(inboxSlices.map((slice) => [slice, 0]));
  for (const { state, group } of entries)
    if (state === 'open') counts.set(group.slice, (counts.get(group.slice) ?? 0) + 1);
  return Object.fromEntries(counts) as Record<InboxSlice, number>;
}
