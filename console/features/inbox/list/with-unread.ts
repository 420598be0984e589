import type { Entry, InboxAnswer } from '../inbox-entry.ts';

/**
 * The entries of an answer, with those on screen of slices that could not be read: they are not known to be gone, so
 * they stay as they are.
 */
export function withUnread(
  { entries, unavailable = [] }: Pick<InboxAnswer, 'entries' | 'unavailable'>,
  shown: readonly Entry[],
): readonly Entry[] {
  if (unavailable.length === 0) return entries;
  const found = new Set(entries.map(({ id }) => id));
  return [...entries, ...shown.filter(({ id, slice }) => unavailable.includes(slice) && !found.has(id))];
}
