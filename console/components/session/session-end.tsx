import { useQueryClient } from '@tanstack/react-query';
import { createContext, useContext, useEffect, useMemo, useState, type ReactNode } from 'react';
import { createApi } from '../../lib/api/api-client.ts';
import { ApiFailure } from '../../lib/api/api-failure.ts';
import type { Me } from '../../lib/server-shapes.ts';
import { ApiContext } from './api-context.ts';

type SessionEnd = Readonly<{
  /** The server does not know the user any more. */
  hasEnded: boolean;
  /** To be told by what is not a call of the API, such as the stream of events. */
  end(): void;
}>;

const SessionEndContext = createContext<SessionEnd>({ hasEnded: false, end: () => {} });

export function useSessionEnd(): SessionEnd {
  return useContext(SessionEndContext);
}

/** Gives the API to the console, and notices when it begins to answer 401. */
export function ApiProvider({ prefix, children }: Readonly<{ prefix: string; children: ReactNode }>) {
  const queries = useQueryClient();
  const [hasEnded, setEnded] = useState(false);
  const api = useMemo(() => createApi(prefix, { onUnauthorized: () => setEnded(true) }), [prefix]);
  useEffect(() => {
    if (!hasEnded) return;
    const look = async (): Promise<void> => {
      if (document.visibilityState !== 'visible') return;
      try {
        const me = await api.get<Me>('/api/v1/me');
        queries.setQueryData(['me'], me);
        setEnded(false);
        await queries.invalidateQueries();
      } catch (error) {
        if (!(error instanceof ApiFailure)) throw error;
      }
    };
    const onLook = (): void => void look();
    document.addEventListener('visibilitychange', onLook);
    addEventListener('focus', onLook);
    return () => {
      document.removeEventListener('visibilitychange', onLook);
      removeEventListener('focus', onLook);
    };
  }, [hasEnded, api, queries]);
  const value = useMemo(() => ({ hasEnded, end: () => setEnded(true) }), [hasEnded]);
  return (
    <SessionEndContext value={value}>
      <ApiContext value={api}>{children}</ApiContext>
    </SessionEndContext>
  );
}
