import type { Inbox, InboxEntry, InboxEntryDetails } from '../../lib/server-shapes.ts';
import { parseFilter, printFilter } from '../../lib/filter/filter.ts';
import type { StatusRole } from '../../lib/status/status-roles.ts';
import { readLocalPlace, type LocalPlace } from '../../lib/view-address.ts';

export type Entry = InboxEntry;
export type EntryDetails = InboxEntryDetails;
type EntryKind = Entry['kind'];
export type InboxSlice = Entry['slice'];
export type EntryState = Entry['state'];
export type InboxAnswer = Inbox;

/** How a kind is drawn: a shape of its own where it has one, and a colour for what it means. */
export const kindLooks: Readonly<Record<EntryKind, Readonly<{ role: StatusRole; shape?: StatusRole }>>> = {
  messages: { role: 'attention' },
  unroutable: { role: 'attention', shape: 'ended' },
  orders: { role: 'attention' },
  held_key: { role: 'attention', shape: 'queued' },
  in_doubt: { role: 'doubt' },
  jobs: { role: 'attention' },
  sagas: { role: 'undoing' },
  redrive: { role: 'attention', shape: 'archived' },
  circuit: { role: 'attention', shape: 'ended' },
  ingest: { role: 'retry' },
  accounting: { role: 'doubt' },
};

/** Where the items are, in one line. What identifies them by a hash says nothing to a reader. */
export function placeText({ where }: Pick<Entry, 'where'>): string {
  const { topic, partition, consumer_group, destination, ordering_key, queue, workflow, step, service } =
    where;
  const steps = [workflow, step].filter((part) => part !== undefined).join(' / ');
  const topics = [topic, partition === undefined ? undefined : `p${partition}`]
    .filter((part) => part !== undefined)
    .join(' ');
  return [topics, consumer_group, destination, ordering_key, queue, steps, service]
    .filter((part) => part !== undefined && part !== '')
    .join(' · ');
}

/**
 * Where the suggested verb leads; null if the server sent what is no page of the console. Jobs come with the list of
 * them, and their verb is a plan for the same ones.
 */
export function verbPlace({ link, verb }: Pick<Entry, 'link' | 'verb'>): LocalPlace | null {
  const place = readLocalPlace(link);
  if (verb.action !== 'requeue' || place?.to !== '/jobs/list') return place;
  const terms = parseFilter(place.search['q'] ?? '').filter(
    ({ qualifier }) => qualifier !== 'status' && qualifier !== 'resolution',
  );
  return { to: '/jobs/requeue', search: { q: printFilter(terms) } };
}

/** The page about the items of an entry: where they are looked at, not where something is done with them. */
export function entryPlace({ kind, where, link }: Pick<Entry, 'kind' | 'where' | 'link'>): LocalPlace {
  const { fingerprint } = where;
  if (kind === 'messages' && fingerprint !== undefined)
    return { to: `/dlq/groups/${encodeURIComponent(fingerprint)}`, search: {} };
  return readLocalPlace(link) ?? { to: '/inbox', search: {} };
}

/** The address of an entry, for somebody else. */
export function entryAddress({ id }: Pick<Entry, 'id'>, filter: string): string {
  const search = new URLSearchParams({ ...(filter === '' ? {} : { q: filter }), peek: id });
  return `/inbox?${search.toString()}`;
}

/** The filter of a tab: the same terms, of entries in another state. Open ones are what the inbox shows by itself. */
export function filterOfState(
  terms: Parameters<typeof printFilter>[0],
  state: EntryState,
): Readonly<Record<string, string>> {
  const rest = terms.filter(({ qualifier }) => qualifier !== 'is');
  const q = printFilter(
    state === 'open' ? rest : [{ qualifier: 'is', value: state, isExcluded: false }, ...rest],
  );
  return q === '' ? {} : { q };
}

export function stateOfFilter(terms: Parameters<typeof printFilter>[0]): EntryState {
  const value = terms.find(({ qualifier, isExcluded }) => qualifier === 'is' && !isExcluded)?.value;
  return value === 'snoozed' || value === 'done' ? value : 'open';
}

export function entryPath(id: string): string {
  return `/api/v1/inbox/${encodeURIComponent(id)}`;
}

/** Of `user:https://idp|ada` only what tells people apart. */
export function shortSubject(subject: string): string {
  return subject.split('|').at(-1) ?? subject;
}
