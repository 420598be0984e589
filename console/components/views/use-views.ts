import { useQuery, type UseQueryResult } from '@tanstack/react-query';
import type { SavedView } from '../../lib/server-shapes.ts';
import { useApi } from '../session/api-context.ts';

export type { SavedView };

export const viewsPath = '/api/v1/views';
export const viewsKey = ['views'] as const;

/** Own views and those that others share, of all lists. Read again when somebody looks. */
export function useViews(): UseQueryResult<readonly SavedView[]> {
  const api = useApi();
  return useQuery({
    queryKey: viewsKey,
    queryFn: async ({ signal }) =>
      (await api.get<Readonly<{ views: readonly SavedView[] }>>(viewsPath, signal)).views,
    staleTime: 0,
  });
}
