import type { Connection } from '../../lib/live/indicator.ts';
import { slices, type LiveEvent } from '../../lib/live/live-events.ts';
import type { LiveStore } from './live-store.ts';

/** What the tab with the stream tells the others. */
type Told =
  | Readonly<{ kind: 'event'; event: LiveEvent; atMs: number }>
  | Readonly<{ kind: 'connection'; connection: Connection }>
  | Readonly<{ kind: 'hello' }>;

type Follow = (
  onEvent: (event: LiveEvent) => void,
  onConnection: (connection: Connection) => void,
) => () => void;

/**
 * One stream for all tabs of a browser, because over HTTP/1.1 a browser opens six connections to a server, and a stream
 * keeps one. The tab that gets the lock opens it, the others hear from that tab; when it closes, the next one gets the
 * lock. Without locks, which browsers have only on secure pages, a tab has a stream while it is visible.
 */
export function shareEvents(store: LiveStore, name: string, follow: Follow): () => void {
  const over = new AbortController();
  if (!('locks' in navigator)) return followWhileVisible(store, follow);
  const channel = new BroadcastChannel(name);
  let isLeader = false;
  const tell = (told: Told): void => {
    // Only pages of this origin hear a channel.
    // oxlint-disable-next-line unicorn/require-post-message-target-origin
    if (!over.signal.aborted) channel.postMessage(told);
  };
  channel.addEventListener('message', ({ data }: MessageEvent<Told>) => {
    if (data.kind === 'hello') {
      if (isLeader) tellAll(store, tell);
    } else if (isLeader) return;
    else if (data.kind === 'event') store.receive(data.event, data.atMs);
    else store.connect(data.connection);
  });
  tell({ kind: 'hello' });
  const lead = async (): Promise<void> => {
    isLeader = true;
    const stop = follow(
      (event) => {
        const atMs = Date.now();
        store.receive(event, atMs);
        tell({ kind: 'event', event, atMs });
      },
      (connection) => {
        store.connect(connection);
        tell({ kind: 'connection', connection });
      },
    );
    await new Promise<void>((resolve) => over.signal.addEventListener('abort', () => resolve()));
    stop();
  };
  navigator.locks.request(name, { signal: over.signal }, lead).catch((error: unknown) => {
    if (!over.signal.aborted) throw error;
  });
  return () => {
    over.abort();
    channel.close();
  };
}

/** A new tab knows at once what the others know. */
function tellAll(store: LiveStore, tell: (told: Told) => void): void {
  const { connection, needsAttention, redrives } = store.state();
  const atMs = store.heardAt();
  tell({ kind: 'connection', connection });
  if (atMs === null) return;
  tell({ kind: 'event', event: { kind: 'redrives', redrives }, atMs });
  for (const slice of slices) {
    const count = needsAttention[slice];
    if (count === undefined) continue;
    const change = { slice, ids: [], many: false };
    tell({ kind: 'event', event: { kind: 'change', change, needsAttention: count }, atMs });
  }
}

function followWhileVisible(store: LiveStore, follow: Follow): () => void {
  let stop: (() => void) | null = null;
  const look = (): void => {
    const isVisible = document.visibilityState === 'visible';
    if (isVisible && stop === null) stop = follow((event) => store.receive(event, Date.now()), store.connect);
    if (isVisible || stop === null) return;
    stop();
    stop = null;
  };
  look();
  document.addEventListener('visibilitychange', look);
  return () => {
    document.removeEventListener('visibilitychange', look);
    stop?.();
  };
}
