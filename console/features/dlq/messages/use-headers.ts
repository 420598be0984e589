import { useQuery } from '@tanstack/react-query';
import { useApi } from '../../../components/session/api-context.ts';
import { useMay } from '../../../components/session/use-may.ts';
import type { Message, Operations } from '../../../lib/server-shapes.ts';
import { messagePath } from './use-message.ts';
import { isProtected, type RevealedProps } from './use-payload.ts';

export type Headers = Operations['getRawMessage']['answer']['headers'];

/** The headers of the message; `protected` where they have covered parts and were not revealed. */
export function useHeaders({ id, version }: Message, revealed: RevealedProps['revealed'] = null) {
  const api = useApi();
  const may = useMay('dlq:payloads:view');
  const query = useQuery({
    queryKey: ['dlq', 'headers', id, version],
    queryFn: async ({ signal }): Promise<Headers | 'protected'> => {
      try {
        const path = `${messagePath(id)}/raw?version=${version}`;
        return (await api.get<Operations['getRawMessage']['answer']>(path, signal)).headers;
      } catch (error) {
        if (isProtected(error)) return 'protected';
        throw error;
      }
    },
    enabled: may.isAllowed && revealed === null,
    staleTime: Infinity,
  });
  return { query, may, headers: revealed === null ? query.data : revealed.headers };
}
