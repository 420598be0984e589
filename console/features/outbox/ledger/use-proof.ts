import { useQuery } from '@tanstack/react-query';
import { useApi } from '../../../components/session/api-context.ts';
import { ApiFailure } from '../../../lib/api/api-failure.ts';
import type { Proof } from '../../../lib/server-shapes.ts';

/** Every use of a key; `unused` if there was none. Attempts are shown as they happen. */
export function useProof(key: string) {
  const api = useApi();
  return useQuery({
    queryKey: ['outbox', 'ledger', key],
    queryFn: async ({ signal }): Promise<Proof | 'unused'> => {
      try {
        return await api.get<Proof>(`/api/v1/outbox/ledger/${encodeURIComponent(key)}`, signal);
      } catch (error) {
        if (error instanceof ApiFailure && error.code === 'SYS_OUTBOX_NOT_FOUND') return 'unused';
        throw error;
      }
    },
    refetchInterval: 5000,
  });
}
