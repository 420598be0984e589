import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useRef, useState } from 'react';
import { useLiveRows, type ListLive } from '../../../components/list/use-live-rows.ts';
import { useApi } from '../../../components/session/api-context.ts';
import { ApiFailure } from '../../../lib/api/api-failure.ts';
import { inboxCountKey } from '../../../lib/inbox-count-key.ts';
import { slices, type FollowedRedrive } from '../../../lib/live/live-events.ts';
import { loadedOf, type Loaded } from '../../../lib/loaded.ts';
import { entryPath, type Entry, type EntryDetails, type InboxAnswer } from '../inbox-entry.ts';
import { withUnread } from './with-unread.ts';

export type InboxHandle = Readonly<{
  loaded: Loaded<readonly Entry[]>;
  /** The newest answer, without its entries: counts, and what is missing. */
  facts: InboxAnswer | undefined;
  live: ListLive<Entry> | undefined;
  refetch: () => void;
  /** After an own action: entries change in place, whatever holds updates. */
  readAgain: () => Promise<void>;
}>;

type Options = Readonly<{
  parameters: readonly (readonly [string, string])[];
  isEnabled: boolean;
}>;

/** The entries that match, as the inbox orders them, kept up to date in place. */
export function useInbox({ parameters, isEnabled }: Options): InboxHandle {
  const api = useApi();
  const search = new URLSearchParams(parameters.map(([name, value]) => [name, value])).toString();
  const path = `/api/v1/inbox${search === '' ? '' : `?${search}`}`;
  const query = useQuery({
    queryKey: ['inbox', 'list', search],
    queryFn: ({ signal }) => api.get<InboxAnswer>(path, signal),
    enabled: isEnabled,
    // Another tab may have changed it meanwhile.
    staleTime: 0,
  });
  const { data } = query;
  const [newest, setNewest] = useState<Readonly<{ of: InboxAnswer; answer: InboxAnswer }> | null>(null);
  const queries = useQueryClient();
  const shown = useRef<readonly Entry[]>([]);
  const load = useLoad();
  const rows = useLiveRows<Entry>({
    live: { slices, idOf: ({ id }) => id, load, areOwn: hasStopped },
    rows: data?.entries,
    total: data === undefined ? null : data.entries.length + data.more,
    hasFailed: query.error !== null,
    isRefetching: query.isRefetching,
    async readFirst() {
      const answer = await api.get<InboxAnswer>(path);
      if (data !== undefined) setNewest({ of: data, answer });
      return {
        rows: withUnread(answer, shown.current),
        isWhole: answer.more === 0,
        total: answer.entries.length + answer.more,
      };
    },
    refetch: () => query.refetch(),
  });
  useEffect(() => {
    shown.current = rows.rows ?? [];
  });
  const facts = newest !== null && newest.of === data ? newest.answer : data;
  useEffect(() => {
    if (facts !== undefined) queries.setQueryData(inboxCountKey, facts);
  }, [facts, queries]);
  return {
    loaded: loadedOf(
      { data: rows.rows, error: query.error ?? rows.error, isFetching: query.isFetching },
      (found) => (found.length === 0 ? 'nothing' : null),
    ),
    facts,
    live: rows.live,
    refetch: () => void query.refetch(),
    readAgain: rows.readAgain,
  };
}

/** Entries as they are now, also those that do not match any more. */
function useLoad(): (entries: readonly Entry[]) => Promise<readonly Entry[]> {
  const api = useApi();
  return useCallback(
    async (entries) => {
      const read = async ({ id }: Entry): Promise<readonly Entry[]> => {
        try {
          return [await api.get<EntryDetails>(entryPath(id))];
        } catch (error) {
          if (error instanceof ApiFailure && error.status === 404) return [];
          throw error;
        }
      };
      return (await Promise.all(entries.map(read))).flat();
    },
    [api],
  );
}

/** A redrive that its canary stopped is an entry. */
function hasStopped(redrives: readonly FollowedRedrive[]): boolean {
  return redrives.some(({ state }) => state === 'stopped');
}
