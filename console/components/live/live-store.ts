import type { Connection, Hold } from '../../lib/live/indicator.ts';
import { mainHold } from '../../lib/live/indicator.ts';
import type { FollowedRedrive, LiveEvent, Slice } from '../../lib/live/live-events.ts';

export type LiveState = Readonly<{
  connection: Connection;
  isPaused: boolean;
  hold: Hold | null;
  /** How many items need attention; absent or null while not known. */
  needsAttention: Readonly<Partial<Record<Slice, number | null>>>;
  redrives: readonly FollowedRedrive[];
}>;

/** What this tab knows of the server, and whether it may show it. */
export type LiveStore = Readonly<{
  state(): LiveState;
  /** Called when the state is another one. */
  subscribe(listener: () => void): () => void;
  /** Called with every event. */
  onEvent(listener: (event: LiveEvent) => void): () => void;
  /** When the server was heard last, in ms since 1970; null before that. */
  heardAt(): number | null;
  /** Whether updates wait, because somebody has paused them, holds them, or does not look. */
  isWaiting(ignoresHold?: boolean): boolean;
  pause(isPaused: boolean): void;
  /** Returns what ends the hold. */
  hold(hold: Hold): () => void;
  receive(event: LiveEvent, atMs: number): void;
  connect(connection: Connection): void;
}>;

export function createLiveStore(): LiveStore {
  let state: LiveState = {
    connection: 'connecting',
    isPaused: false,
    hold: null,
    needsAttention: {},
    redrives: [],
  };
  let heardAt: number | null = null;
  const listeners = new Set<() => void>();
  const eventListeners = new Set<(event: LiveEvent) => void>();
  const holds = new Set<Hold>();

  const change = (next: Partial<LiveState>): void => {
    const isSame = Object.entries(next).every(([name, value]) => state[name as keyof LiveState] === value);
    if (isSame) return;
    state = { ...state, ...next };
    for (const tell of listeners) tell();
  };
  const note = (event: LiveEvent): void => {
    if (event.kind === 'redrives') change({ redrives: event.redrives });
    if (event.kind !== 'change' || event.needsAttention === undefined) return;
    const { slice } = event.change;
    if (state.needsAttention[slice] !== event.needsAttention)
      change({ needsAttention: { ...state.needsAttention, [slice]: event.needsAttention } });
  };

  return {
    state: () => state,
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    onEvent(listener) {
      eventListeners.add(listener);
      return () => eventListeners.delete(listener);
    },
    heardAt: () => heardAt,
    isWaiting: (ignoresHold = false) =>
      state.isPaused || (state.hold !== null && !ignoresHold) || document.visibilityState === 'hidden',
    pause: (isPaused) => change({ isPaused }),
    hold(hold) {
      holds.add(hold);
      change({ hold: mainHold(holds) });
      return () => {
        holds.delete(hold);
        change({ hold: mainHold(holds) });
      };
    },
    receive(event, atMs) {
      heardAt = atMs;
      note(event);
      for (const tell of eventListeners) tell(event);
    },
    connect: (connection) => change({ connection }),
  };
}
