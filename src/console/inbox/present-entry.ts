import { formatInstant } from '../../kernel/timestamp.ts';
import type { InboxPlace } from '../../kernel/inbox/inbox-group.ts';
import type { Masks } from '../../kernel/protect/protection.ts';
import type { Entry, InboxDeps, InboxList } from './list-entries.ts';
import { describeRank } from './rank.ts';

export type Json = Readonly<Record<string, unknown>>;

export function presentList(deps: Pick<InboxDeps, 'masks'>, list: InboxList): Json {
  return {
    entries: list.entries.map((entry) => presentEntry(deps, entry)),
    more: list.more,
    counts: { ...list.counts, by_slice: list.bySlice },
    ...(list.unavailable.length === 0 ? {} : { unavailable: list.unavailable }),
    ...(list.partial.length === 0 ? {} : { partial: list.partial }),
    as_of: formatInstant(list.asOf),
  };
}

export function presentEntry({ masks }: Pick<InboxDeps, 'masks'>, entry: Entry): Json {
  const { group, stored, rank, state } = entry;
  const own = masks[group.slice];
  return {
    id: entry.id,
    kind: group.kind,
    slice: group.slice,
    state,
    title: entry.title,
    where: presentPlace(group.place, own),
    count: group.count,
    trend: entry.trend,
    oldest_at: formatInstant(group.oldestAt),
    newest_at: formatInstant(group.newestAt),
    rank,
    rank_reason: describeRank(rank),
    badges: entry.badges,
    owner: stored?.owner ?? null,
    snooze: state === 'snoozed' ? presentSnooze(entry) : null,
    done: state === 'done' ? presentDone(entry, own) : null,
    notes: stored?.notes ?? 0,
    verb: group.verb,
    link: group.link,
  };
}

function presentPlace({ ordering_key: key, ...place }: InboxPlace, masks: Masks): Json {
  return key === undefined ? place : { ...place, ordering_key: masks.keyText(key) };
}

function presentSnooze({ stored }: Entry): Json {
  return {
    count: stored?.decision.snooze?.count ?? 0,
    by: stored?.snoozedBy ?? null,
    at: formatInstant(stored?.snoozedAt ?? null),
  };
}

/** By hand, or because its items are gone: then with who decided about the last of them, if the audit log says so. */
function presentDone({ stored, group }: Entry, masks: Masks): Json {
  if (group.count > 0 || stored === null)
    return {
      by: stored?.doneBy ?? null,
      at: formatInstant(stored?.doneAt ?? null),
      reason: masks.text(stored?.doneReason ?? null),
      action: null,
    };
  return {
    by: stored.goneBy,
    at: formatInstant(stored.seen.goneAt),
    reason: masks.text(stored.goneReason),
    action: stored.goneAction,
  };
}
