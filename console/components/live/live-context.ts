import { createContext, useContext, useSyncExternalStore } from 'react';
import { createLiveStore, type LiveState, type LiveStore } from './live-store.ts';

/** Without a provider, as in tests of single components, there are no events. */
export const LiveContext = createContext<LiveStore>(createLiveStore());

export function useLiveStore(): LiveStore {
  return useContext(LiveContext);
}

/** One part of the state; the component is drawn again when that part changes. */
export function useLiveState<Part>(select: (state: LiveState) => Part): Part {
  const store = useLiveStore();
  return useSyncExternalStore(store.subscribe, () => select(store.state()));
}
