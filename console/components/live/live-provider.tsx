import { useEffect, useMemo, type ReactNode } from 'react';
import { useApi } from '../session/api-context.ts';
import { useSession } from '../session/session.tsx';
import { useSessionEnd } from '../session/session-end.tsx';
import { followEvents } from './event-source.ts';
import { LiveContext } from './live-context.ts';
import { createLiveStore } from './live-store.ts';
import { shareEvents } from './share-events.ts';
import { useTextSelectionHold } from './use-hold.ts';

/** Gives the events of the server to the console, while there is a session. */
export function LiveProvider({ children }: Readonly<{ children: ReactNode }>) {
  const api = useApi();
  const { me } = useSession();
  const { hasEnded } = useSessionEnd();
  const store = useMemo(() => createLiveStore(), []);
  const name = `redrive-events ${api.url('')} ${me.subject}`;
  useEffect(() => {
    if (hasEnded) return store.connect('away');
    return shareEvents(store, name, (onEvent, onConnection) =>
      followEvents({
        url: api.url('/api/v1/events'),
        onEvent,
        onConnection,
        // A 401 ends the session, for all of the console.
        probe: () =>
          api.get('/api/v1/me').then(
            () => true,
            () => false,
          ),
      }),
    );
  }, [api, name, hasEnded, store]);
  return (
    <LiveContext value={store}>
      <TextSelection />
      {children}
    </LiveContext>
  );
}

function TextSelection(): null {
  useTextSelectionHold();
  return null;
}
