import { useQuery } from '@tanstack/react-query';
import { useApi } from '../../components/session/api-context.ts';
import { useMay } from '../../components/session/use-may.ts';
import type { Operations } from '../../lib/server-shapes.ts';

export type DestinationList = Operations['listDestinations']['answer'];
export type Destination = DestinationList['destinations'][number];

/** All destinations that the user may see. `everyMs`: how often they are read again. */
export function useDestinations(everyMs: number | false) {
  const api = useApi();
  const may = useMay('outbox:destinations:view');
  return useQuery({
    queryKey: ['outbox', 'destinations'],
    queryFn: ({ signal }) => api.get<DestinationList>('/api/v1/outbox/destinations', signal),
    enabled: may.isAllowed,
    refetchInterval: everyMs,
    staleTime: 30_000,
  });
}

/** What is known of one destination; undefined while nothing is. */
export function useDestination(name: string | undefined): Destination | undefined {
  return useDestinations(false).data?.destinations.find((one) => one.name === name);
}
