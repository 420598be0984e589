import { useState } from 'react';
import { messageOf } from '../../lib/api/api-failure.ts';
import { useApi } from './api-context.ts';
import { useSession } from './session.tsx';

export type Logout = Readonly<{
  /** Null where there is no login. */
  logout: (() => void) | null;
  failure: string | null;
}>;

/** Ends the session on the server and at the provider, or shows the page of those who are logged out. */
export function useLogout(): Logout {
  const api = useApi();
  const { facts, onLogout } = useSession();
  const [failure, setFailure] = useState<string | null>(null);
  const logout = async (): Promise<void> => {
    try {
      const { value } = await api.send<Readonly<{ logout_url: string | null }>>('POST', '/auth/logout');
      onLogout();
      if (value.logout_url !== null) location.assign(value.logout_url);
    } catch (error) {
      setFailure(messageOf(error));
    }
  };
  return { logout: facts.login === null ? null : () => void logout(), failure };
}
