import { useState } from 'react';
import { messageOf } from '../../lib/api/api-failure.ts';
import { useApi } from './api-context.ts';
import { useSession } from './session.tsx';

export type Logout = Readonly<{
  /** Null where there is no login. */
  logout: (() => void) | null;
  failure: string | null;
}>;

/** Ends the session on the server, then shows the page of those who are logged out. */
export function useLogout(): Logout {
  const api = useApi();
  const { facts, onLogout } = useSession();
  const [failure, setFailure] = useState<string | null>(null);
  const logout = async (): Promise<void> => {
    try {
      await api.send('POST', '/auth/logout');
      onLogout();
    } catch (error) {
      setFailure(messageOf(error));
    }
  };
  return { logout: facts.login === null ? null : () => void logout(), failure };
}
