import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useApi } from '../../../components/session/api-context.ts';
import type { Message } from '../../../lib/server-shapes.ts';

const busyMs = 1000;
const restingMs = 5000;

/** One message with its entity tag, read again while somebody may change it. */
export function useMessage(id: string) {
  const api = useApi();
  const queries = useQueryClient();
  const query = useQuery({
    queryKey: ['dlq', 'message', id],
    queryFn: ({ signal }) => api.read<Message>(messagePath(id), signal),
    refetchInterval: ({ state: { data } }) => (data?.value.status === 'RETRYING' ? busyMs : restingMs),
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
