import { useCallback } from 'react';
import { useApi } from '../../../components/session/api-context.ts';
import { ApiFailure } from '../../../lib/api/api-failure.ts';
import type { SagaWithSteps } from '../../../lib/server-shapes.ts';
import { sagaPath } from '../use-saga.ts';
import type { SagaRow } from './saga-columns.tsx';

/** Listed sagas as they are now. */
export function useReadAgain(): (rows: readonly SagaRow[]) => Promise<readonly SagaRow[]> {
  const api = useApi();
  return useCallback(
    async (rows) => {
      const read = async ({ saga_id: id }: SagaRow): Promise<readonly SagaRow[]> => {
        try {
          return [(await api.get<SagaWithSteps>(sagaPath(id))).saga];
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
