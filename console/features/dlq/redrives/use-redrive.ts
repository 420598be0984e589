import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useLiveState } from '../../../components/live/live-context.ts';
import { useLiveReading } from '../../../components/live/use-live-reading.ts';
import { useApi } from '../../../components/session/api-context.ts';
import type { Redrive } from '../../../lib/server-shapes.ts';
import { hasEnded, isMoving } from './redrive-numbers.ts';

type Command = 'approve' | 'start' | 'pause' | 'resume' | 'cancel';

const movingMs = 1000;
const restingMs = 5000;
/** Messages may still come back after the end, which the page then shows. */
const endedMs = 30_000;

/** One redrive, read again as often as it changes; without events as often as it may have changed. */
export function useRedrive(id: string) {
  const api = useApi();
  const queries = useQueryClient();
  const isFollowed = useLiveState(
    ({ connection, redrives }) => connection === 'live' && redrives.some((one) => one.id === id),
  );
  const path = `/api/v1/dlq/redrives/${encodeURIComponent(id)}`;
  const query = useQuery({
    queryKey: ['dlq', 'redrive', id],
    queryFn: ({ signal }) => api.read<Redrive>(path, signal),
    refetchInterval: ({ state: { data } }) => {
      if (isFollowed) return false;
      if (data === undefined) return restingMs;
      if (isMoving(data.value)) return movingMs;
      return hasEnded(data.value) ? endedMs : restingMs;
    },
  });
  useLiveReading({
    slices: [],
    areOwn: (redrives) => redrives.some((one) => one.id === id),
    read: () => query.refetch(),
  });
  const etag = query.data?.etag ?? null;
  /** The answer of a command has no entity tag, which the next change needs. */
  const readAgain = async (): Promise<void> => {
    for (const list of [
      ['dlq', 'redrives'],
      ['dlq', 'redrive-items', id],
    ])
      void queries.invalidateQueries({ queryKey: list });
    await query.refetch();
  };
  return {
    query: { data: query.data?.value, error: query.error, isFetching: query.isFetching },
    refetch: () => void query.refetch(),
    command: async (command: Command, reason?: string): Promise<void> => {
      const body = reason === undefined || reason.trim() === '' ? {} : { reason: reason.trim() };
      await api.send<Redrive>('POST', `${path}/${command}`, { body });
      await readAgain();
    },
    patch: async (rate: number | null): Promise<void> => {
      await api.send<Redrive>('PATCH', path, {
        body: { rate_per_second: rate },
        ...(etag === null ? {} : { ifMatch: etag }),
      });
      await readAgain();
    },
  };
}

export type RedriveHandle = ReturnType<typeof useRedrive>;
