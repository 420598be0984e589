import type { FoundItem } from '../../lib/server-shapes.ts';
import type { TextsLike } from '../../lib/text/catalogue.ts';
import type { PageAction } from './page-actions.ts';
import type { RecentItem } from './recent-items.ts';
import type { en } from './texts/en.ts';

type Texts = TextsLike<typeof en>;

/** One line of the palette: it leads somewhere, or presses a button of the page. */
export type Entry = Readonly<{
  id: string;
  label: string;
  detail: string;
  status: string | null;
  keys: string | null;
  disabledReason: string | null;
  does:
    | Readonly<{ kind: 'go'; to: string; search?: Readonly<Record<string, string>> }>
    | Readonly<{ kind: 'press'; element: HTMLElement }>;
}>;

export type Group = Readonly<{ value: string; items: readonly Entry[] }>;

export type PageLink = Readonly<{ to: string; label: string; keys: string | null }>;

export type Sources = Readonly<{
  found: readonly FoundItem[];
  actions: readonly PageAction[];
  pages: readonly PageLink[];
  recent: readonly RecentItem[];
}>;

const plain = { detail: '', status: null, keys: null, disabledReason: null };

/** What matches the text; without one, what somebody may want. Found items match by themselves. */
export function groupsOf(
  text: string,
  { found, actions, pages, recent }: Sources,
  t: Texts,
): readonly Group[] {
  const words = text.trim().toLowerCase().split(/\s+/);
  const matches = (label: string): boolean => words.every((word) => label.toLowerCase().includes(word));
  const groups = [
    { value: t.found, items: found.map((item) => foundEntry(item, t)) },
    {
      value: t.recent,
      items: recent
        .filter(({ label, detail }) => matches(`${label} ${detail}`))
        .map(({ to, label, detail }) => ({ ...plain, ...goTo(to), label, detail, id: `recent ${to}` })),
    },
    {
      value: t.actions,
      items: actions
        .filter(({ label }) => matches(label))
        .map(({ label, keys, disabledReason, element }) => ({
          ...plain,
          id: `action ${label}`,
          label,
          keys,
          disabledReason,
          detail: disabledReason ?? '',
          does: { kind: 'press', element } as const,
        })),
    },
    {
      value: t.pages,
      items: pages
        .filter(({ label }) => matches(label))
        .map(({ to, label, keys }) => ({ ...plain, ...goTo(to), label, keys, id: `page ${to}` })),
    },
  ];
  return groups.filter(({ items }) => items.length > 0);
}

const goTo = (to: string) => ({ does: { kind: 'go', to } as const });

function foundEntry({ kind, id, title, status, link, by, archived }: FoundItem, t: Texts): Entry {
  const how = { id: '', key: t.byKey, trace: t.byTrace }[by];
  const detail = [title, how, archived ? t.archived : ''].filter((part) => part !== '').join(' · ');
  return { ...plain, ...goTo(link), id: `found ${kind} ${id}`, label: `${t[kind]} ${id}`, detail, status };
}
