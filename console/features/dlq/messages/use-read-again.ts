import { useCallback } from 'react';
import { useApi } from '../../../components/session/api-context.ts';
import { ApiFailure } from '../../../lib/api/api-failure.ts';
import type { ListedMessage, Message } from '../../../lib/server-shapes.ts';
import { messagePath } from './use-message.ts';

/** Listed messages as they are now; without those that were deleted. */
export function useReadAgain(): (rows: readonly ListedMessage[]) => Promise<readonly ListedMessage[]> {
  const api = useApi();
  return useCallback(
    async (rows) => {
      const read = async (row: ListedMessage): Promise<readonly ListedMessage[]> => {
        try {
          return [withChanges(row, await api.get<Message>(messagePath(row.id)))];
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

/** What may change without an edit; its payload is previewed when the list is loaded. */
function withChanges(row: ListedMessage, now: Message): ListedMessage {
  const { status, retry_count, max_retries, updated_at, last_retry_at, attempt_no } = now;
  const { original_topic, resolution, archived, routed, next_attempt_at, retry_policy, version } = now;
  return {
    ...row,
    status,
    retry_count,
    max_retries,
    updated_at,
    last_retry_at,
    attempt_no,
    original_topic,
    resolution,
    archived,
    routed,
    next_attempt_at,
    retry_policy,
    version,
  };
}
