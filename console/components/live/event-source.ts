import { readEvent, type LiveEvent } from '../../lib/live/live-events.ts';
import type { Connection } from '../../lib/live/indicator.ts';

export type StreamOptions = Readonly<{
  url: string;
  onEvent: (event: LiveEvent) => void;
  onConnection: (connection: Connection) => void;
  /** Whether the server answers; throws nothing. */
  probe: () => Promise<boolean>;
  times?: Partial<StreamTimes>;
}>;

export type StreamTimes = Readonly<{
  /** The server says something every three seconds; a proxy that holds events back does not pass it on. */
  silentMs: number;
  firstEventMs: number;
  pollMs: number;
  /** A proxy that held events back is tried again. */
  retryHeldMs: number;
  firstRetryMs: number;
  maxRetryMs: number;
}>;

const defaultTimes: StreamTimes = {
  silentMs: 10_000,
  firstEventMs: 6000,
  pollMs: 5000,
  retryHeldMs: 60_000,
  firstRetryMs: 500,
  maxRetryMs: 15_000,
};

const names = ['change', 'redrive', 'resync', 'beat', 'bye'] as const;

/**
 * Events of the server, and while they do not come a `resync` every five seconds, as long as the server answers. It
 * connects again by itself, because the browser's way of doing that ends with any answer but 200.
 */
export function followEvents(options: StreamOptions): () => void {
  const { onEvent, onConnection } = options;
  const times = { ...defaultTimes, ...options.times };
  const polling = createPolling(options, times.pollMs);
  const backOff = createBackOff(times);
  let source: EventSource | null = null;
  let watch: ReturnType<typeof setTimeout> | undefined;
  let retry: ReturnType<typeof setTimeout> | undefined;

  const drop = (): void => {
    clearTimeout(watch);
    clearTimeout(retry);
    source?.close();
    source = null;
  };
  const connectIn = (ms: number): void => {
    drop();
    retry = setTimeout(connect, ms);
    polling.start();
  };
  const receive = (event: LiveEvent | null): void => {
    if (event?.kind === 'bye') return connectIn(backOff.next());
    clearTimeout(watch);
    watch = setTimeout(() => connectIn(backOff.next()), times.silentMs);
    backOff.reset();
    polling.stop();
    onConnection('live');
    if (event !== null) onEvent(event);
  };
  function connect(): void {
    drop();
    const opened = new EventSource(options.url);
    source = opened;
    for (const name of names)
      opened.addEventListener(name, ({ data }) => receive(readEvent(name, String(data))));
    opened.addEventListener('error', () => {
      connectIn(backOff.next());
      polling.look();
    });
    watch = setTimeout(() => connectIn(times.retryHeldMs), times.firstEventMs);
  }

  onConnection('connecting');
  connect();
  return () => {
    polling.stop();
    drop();
  };
}

type Polling = Readonly<{ start(): void; stop(): void; look(): void }>;

function createPolling({ onEvent, onConnection, probe }: StreamOptions, everyMs: number): Polling {
  let timer: ReturnType<typeof setInterval> | undefined;
  const look = async (): Promise<void> => {
    const isThere = await probe();
    if (timer === undefined) return;
    onConnection(isThere ? 'polling' : 'away');
    if (isThere) onEvent({ kind: 'resync' });
  };
  return {
    start() {
      if (timer !== undefined) return;
      onConnection('connecting');
      timer = setInterval(() => void look(), everyMs);
    },
    stop() {
      clearInterval(timer);
      timer = undefined;
    },
    look: () => void look(),
  };
}

function createBackOff({ firstRetryMs, maxRetryMs }: StreamTimes) {
  let failures = 0;
  return {
    next: (): number => {
      failures += 1;
      // Not all clients at once.
      return Math.min(firstRetryMs * 2 ** (failures - 1), maxRetryMs) * (0.5 + Math.random() / 2);
    },
    reset: () => void (failures = 0),
  };
}
