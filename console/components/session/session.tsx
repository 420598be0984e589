import { createContext, useContext, type ReactNode } from 'react';
import type { Me } from '../../lib/server-shapes.ts';
import type { PageFacts } from '../../lib/page-facts.ts';

/** Who uses the console, and what the server wrote into the page. */
export type Session = Readonly<{
  me: Me;
  facts: PageFacts;
  /** The server has ended the session because the user asked for it. */
  onLogout(): void;
}>;

const SessionContext = createContext<Session | null>(null);

export function SessionProvider({ session, children }: Readonly<{ session: Session; children: ReactNode }>) {
  return <SessionContext value={session}>{children}</SessionContext>;
}

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (session === null) throw new Error('there is no session here');
  return session;
}
