import { keep, readKept } from '../../lib/session-store.ts';

/** Where somebody went from here. It is kept in the tab. */
export type RecentItem = Readonly<{ to: string; label: string; detail: string }>;

const maxKept = 8;
const nameOf = (subject: string): string => `recent-${subject}`;

/** Of one person: the next login of the same tab does not see them. */
export function readRecent(subject: string): readonly RecentItem[] {
  const text = readKept(nameOf(subject));
  const kept: unknown = text === null ? [] : JSON.parse(text);
  return Array.isArray(kept) ? kept.filter(isRecent).slice(0, maxKept) : [];
}

export function keepRecent(subject: string, item: RecentItem): void {
  const others = readRecent(subject).filter(({ to }) => to !== item.to);
  keep(nameOf(subject), JSON.stringify([item, ...others].slice(0, maxKept)));
}

function isRecent(item: unknown): item is RecentItem {
  const { to, label, detail } = (item ?? {}) as Readonly<Record<string, unknown>>;
  return (
    typeof to === 'string' && to.startsWith('/') && typeof label === 'string' && typeof detail === 'string'
  );
}
