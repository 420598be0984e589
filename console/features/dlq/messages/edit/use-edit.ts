import { useQuery } from '@tanstack/react-query';
import { useDeferredValue, useState } from 'react';
import { useApi } from '../../../../components/session/api-context.ts';
import type { EditValidation } from '../../../../lib/server-shapes.ts';
import { messagePath, type MessageHandle } from '../use-message.ts';
import { changesOf, draftOf, hasChanges, type Draft, type EditInput, type Version } from './draft.ts';

/** The newest version and the draft that is made of it. The draft stays when somebody else edits meanwhile. */
export function useDraft(version: Version) {
  const [draft, setDraft] = useState<Draft>(() => draftOf(version));
  return {
    draft,
    change: (part: Partial<Draft>): void => setDraft((before) => ({ ...before, ...part })),
    reset: (to: Version): void => setDraft(draftOf(to)),
    isChanged: hasChanges(draft, version),
  };
}

/** What the server says of the draft, before it is saved. */
export function useValidation(id: string, version: Version, draft: Draft) {
  const api = useApi();
  const body = useDeferredValue(JSON.stringify(changesOf(draft, version)));
  const { data, error } = useQuery({
    queryKey: ['dlq', 'edit-validation', id, version.version, body],
    queryFn: async ({ signal }) => {
      await pause(signal);
      const { value } = await api.send<EditValidation>('POST', `${messagePath(id)}/validate`, {
        body: JSON.parse(body) as EditInput,
        signal,
      });
      return value;
    },
    enabled: body !== '{}',
    placeholderData: (last) => last,
    staleTime: 0,
    gcTime: 0,
  });
  return { validation: body === '{}' ? undefined : data, error };
}

const typingMs = 300;

/** Until typing has paused; the next key cancels it. */
async function pause(signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(resolve, typingMs);
    signal.addEventListener('abort', () => {
      clearTimeout(timer);
      reject(new DOMException('typing goes on', 'AbortError'));
    });
  });
}

export function useSave(id: string, version: Version, handle: MessageHandle) {
  const api = useApi();
  return async (draft: Draft): Promise<void> => {
    await api.send('POST', `${messagePath(id)}/edit`, {
      body: { ...changesOf(draft, version), reason: draft.reason.trim() },
      ...(handle.etag === null ? {} : { ifMatch: handle.etag }),
    });
    await handle.readAgain();
  };
}
