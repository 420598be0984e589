import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useLiveState } from '../../../components/live/live-context.ts';
import { useLiveReading } from '../../../components/live/use-live-reading.ts';
import { useApi } from '../../../components/session/api-context.ts';
import type { Message } from '../../../lib/server-shapes.ts';

const busyMs = 1000;
const restingMs = 5000;

/** One message with its entity tag, read again when somebody changes it. */
export function useMessage(id: string) {
  const api = useApi();
  const queries = useQueryClient();
  const isLive = useLiveState(({ connection }) => connection === 'live');
  const query = useQuery({
    queryKey: ['dlq', 'message', id],
    queryFn: ({ signal }) => api.read<Message>(messagePath(id), signal),
    refetchInterval: ({ state: { data } }) =>
      isLive ? false : data?.value.status === 'RETRYING' ? busyMs : restingMs,
  });
  useLiveReading({
    slices: ['dlq'],
    isOwn: ({ ids, many }) => many || ids.includes(id),
    read: () => query.refetch(),
    // A draft is kept apart, and has to know of a newer version.
    ignoresHold: true,
  });
  return {
    query: { data: query.data?.value, error: query.error, isFetching: query.isFetching },
    etag: query.data?.etag ?? null,
    /** After an action: the message, its history and all lists are old. */
    readAgain: async (): Promise<void> => {
      for (const list of ['messages', 'groups', 'group', 'facets', 'history'])
        void queries.invalidateQueries({ queryKey: ['dlq', list] });
      await query.refetch();
    },
  };
}

export type MessageHandle = ReturnType<typeof useMessage>;

export function messagePath(id: string): string {
  return `/api/v1/dlq/messages/${encodeURIComponent(id)}`;
}
