import type { ValueCounts } from '../../../lib/filter/complete-filter.ts';
import { isMe } from '../../../lib/is-me.ts';
import type { Me } from '../../../lib/server-shapes.ts';
import type { Entry } from '../inbox-entry.ts';

/** Values that occur among the entries shown, the most frequent first, to choose a filter from. */
export function countValues(entries: readonly Entry[], me: Pick<Me, 'subject' | 'type'>): ValueCounts {
  const countBy = (valueOf: (entry: Entry) => string) => {
    const counts = new Map<string, number>();
    for (const entry of entries) counts.set(valueOf(entry), (counts.get(valueOf(entry)) ?? 0) + 1);
    return [...counts].map(([value, count]) => ({ value, count })).toSorted((a, b) => b.count - a.count);
  };
  const assignees = countBy(({ owner }) =>
    owner === null ? 'none' : isMe(me, owner.subject) ? 'me' : owner.subject,
  );
  const none = ['me', 'none']
    .filter((value) => !assignees.some((one) => one.value === value))
    .map((value) => ({ value, count: 0 }));
  return {
    kind: countBy(({ kind }) => kind),
    slice: countBy(({ slice }) => slice),
    assignee: [...assignees, ...none],
  };
}
