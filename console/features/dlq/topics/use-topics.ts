import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { useLiveReading } from '../../../components/live/use-live-reading.ts';
import { useApi } from '../../../components/session/api-context.ts';
import { useMay } from '../../../components/session/use-may.ts';
import { loadedOf, type Loaded } from '../../../lib/loaded.ts';
import type { Operations } from '../../../lib/server-shapes.ts';
import { sourceTopicsOf, type SourceTopic } from './sources-of.ts';

type TopicList = Operations['listTopics']['answer'];
type Sources = Operations['listSources']['answer'];
type Accounting = Operations['getAccounting']['answer'];

type Reading<T> = Readonly<{ loaded: Loaded<T>; refetch: () => void }>;

const everyMs = 10_000;

/** All topics, or one of them; a topic without messages has none. */
export function useTopics(topic?: string): Reading<TopicList> {
  const api = useApi();
  const path = topic === undefined ? '' : `?topic=${encodeURIComponent(topic)}`;
  const query = useQuery({
    queryKey: ['dlq', 'topics', topic ?? null],
    queryFn: ({ signal }) => api.get<TopicList>(`/api/v1/dlq${path}`, signal),
    refetchInterval: everyMs,
  });
  useLiveReading({ slices: ['dlq'], read: () => query.refetch() });
  return {
    loaded: loadedOf(query, ({ topics }) => (topics.length === 0 ? 'nothing' : null)),
    refetch: () => void query.refetch(),
  };
}

/** What is read, with its accounts; null for those who may not see it. */
export function useSourceTopics(): Reading<readonly SourceTopic[]> | null {
  const api = useApi();
  const { isAllowed } = useMay('dlq:sources:view');
  const query = useQuery({
    queryKey: ['dlq', 'sources'],
    queryFn: async ({ signal }) => {
      const [{ sources }, { partitions }] = await Promise.all([
        api.get<Sources>('/api/v1/dlq/sources', signal),
        api.get<Accounting>('/api/v1/dlq/accounting', signal),
      ]);
      return sourceTopicsOf(sources, partitions);
    },
    enabled: isAllowed,
    refetchInterval: everyMs,
  });
  return useMemo(
    () => (isAllowed ? { loaded: loadedOf(query, () => null), refetch: () => void query.refetch() } : null),
    [isAllowed, query],
  );
}
