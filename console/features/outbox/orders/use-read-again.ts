import { useCallback } from 'react';
import { useApi } from '../../../components/session/api-context.ts';
import { ApiFailure } from '../../../lib/api/api-failure.ts';
import type { Order, OrderDetails } from '../../../lib/server-shapes.ts';
import { orderPath } from './use-order.ts';

/** Listed orders as they are now; without those that are no longer stored. */
export function useReadAgain(): (rows: readonly Order[]) => Promise<readonly Order[]> {
  const api = useApi();
  return useCallback(
    async (rows) => {
      const read = async (row: Order): Promise<readonly Order[]> => {
        try {
          const {
            lane: _lane,
            attempts: _attempts,
            audit: _audit,
            ...now
          } = await api.get<OrderDetails>(orderPath(row.id));
          // A request never changes, and a list leaves large ones out.
          return [{ ...now, request: row.request }];
        } catch (error) {
          if (error instanceof ApiFailure && error.status === 404) return [];
          throw error;
        }
      };
      return (await Promise.all(rows.map(read))).flat();
    },
    [api],
  );
}
