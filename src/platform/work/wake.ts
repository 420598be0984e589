import { randomUUID } from 'node:crypto';
import { backoffMs } from '../../kernel/backoff.ts';
import { onceAborted, sleep } from '../../kernel/clock.ts';
import type { Service } from '../../kernel/service.ts';
import { withResolvers } from './with-resolvers.ts';
import type { Database, Queryable } from '../postgres/database.ts';
import { sql } from '../postgres/sql.ts';

/**
 * Wakes waiting loops by NOTIFY, over one connection per process. A loop that waits here also polls, so a lost
 * notification, a listener that reconnects or a pooler without LISTEN costs one poll interval and nothing else. The
 * listener counts as listening while it hears itself: a pooler may accept LISTEN and deliver nothing, and a firewall
 * may drop a connection silently.
 */
export type Wake = Service &
  Readonly<{
    /** Resolves with true on a notification for the channel, with false after `pollMs` or when the signal aborts. */
    wait(channel: string, pollMs: number, signal: AbortSignal): Promise<boolean>;
    isListening(): boolean;
  }>;

const pgChannel = 'redrive';
/** How long an announcement holds at least. */
const announcedForMs = 3000;
/**
 * How long it holds for a loop that waits this long: it has nothing to do. While work is under way announcements are
 * short, because PostgreSQL commits transactions that notify one after another.
 */
const idleWait = { fromMs: 5000, announcedForMs: 60_000 } as const;
/** How often the listener checks that it hears its own notification, and how long that may take. */
const echoEveryMs = 60_000;
/** A listener that does not hear our own notification by then is deaf. */
const echoWithinMs = 5000;

export type WakeOptions = Readonly<{ listen: boolean; worker: string; onError: (error: unknown) => void }>;

export function createWake(db: Database, options: WakeOptions): Wake {
  const waiters = createWaiters();
  const listener = createListener(db, waiters, options.onError);
  const announce = createAnnouncements(db, options.worker, listener.isListening);
  return {
    name: 'wake',
    isListening: listener.isListening,
    async start() {
      if (options.listen) listener.start();
    },
    stop: listener.stop,
    async wait(channel, pollMs, signal) {
      if (signal.aborted) return false;
      waiters.expect(channel);
      await announce(channel, pollMs);
      return waiters.wait(channel, pollMs, signal);
    },
  };
}

type Waiters = ReturnType<typeof createWaiters>;

/** Who waits on which channel in this process. */
function createWaiters() {
  const waiting = new Map<string, Set<() => void>>();
  /** Channels that were notified while nobody waited on them: the next waiter may have looked too early. */
  const missed = new Set<string>();

  const wakeUp = (channel: string): void => {
    const waiters = waiting.get(channel);
    if (waiters === undefined) return;
    if (waiters.size === 0) missed.add(channel);
    for (const go of waiters) go();
  };

  /** From now on a notification for the channel is not lost. */
  const expect = (channel: string): Set<() => void> => {
    const waiters = waiting.get(channel) ?? new Set();
    waiting.set(channel, waiters);
    return waiters;
  };

  return {
    wakeUp,
    wakeUpAll: () => [...waiting.keys()].forEach(wakeUp),
    expect,
    async wait(channel: string, pollMs: number, signal: AbortSignal): Promise<boolean> {
      const waiters = expect(channel);
      if (missed.delete(channel)) return true;
      if (signal.aborted) return false;
      return new Promise<boolean>((resolve) => {
        const finish = (isNotified: boolean): void => {
          clearTimeout(timer);
          signal.removeEventListener('abort', giveUp);
          waiters.delete(wakeUp);
          resolve(isNotified);
        };
        const wakeUp = (): void => finish(true);
        const giveUp = (): void => finish(false);
        const timer = setTimeout(giveUp, pollMs);
        signal.addEventListener('abort', giveUp, { once: true });
        waiters.add(wakeUp);
      });
    },
  };
}

/** Keeps one connection that listens, and reconnects with backoff. */
function createListener(
  db: Database,
  waiters: Waiters,
  onError: (error: unknown) => void,
): Readonly<{ start(): void; stop(): Promise<void>; isListening(): boolean }> {
  const stopping = new AbortController();
  let isHearing = false;
  let running = Promise.resolve();

  const listenOnce = async (): Promise<void> => {
    const ended = withResolvers<Error | undefined>();
    const closing = new AbortController();
    const fresh = await db.connect(ended.resolve);
    try {
      if (stopping.signal.aborted) return;
      const echo = createEcho(db);
      await fresh.listen(pgChannel, (payload) =>
        payload === echo.payload ? echo.heard() : waiters.wakeUp(payload),
      );
      // Notifications that were sent while nobody listened are lost, so everybody looks once.
      waiters.wakeUpAll();
      const error = await Promise.race([
        ended.promise,
        onceAborted(stopping.signal),
        echo.watch(closing.signal, () => (isHearing = true)),
      ]);
      if (error !== undefined) throw error;
    } finally {
      closing.abort();
      isHearing = false;
      // Everybody looks once, and polls from now on.
      waiters.wakeUpAll();
      await fresh.close().catch(() => {});
    }
  };

  const keepListening = async (): Promise<void> => {
    for (let failures = 0; !stopping.signal.aborted;) {
      const begin = performance.now();
      const isDeaf = await listenOnce().then(
        () => false,
        (error: unknown) => {
          if (!stopping.signal.aborted) onError(error);
          return error instanceof DeafListenerError;
        },
      );
      if (isDeaf) await sleep(echoEveryMs, stopping.signal);
      // After a connection that lasted for a while, the backoff starts again.
      failures = performance.now() - begin > 60_000 ? 1 : failures + 1;
      await sleep(backoffMs({ initialMs: 100, maxMs: 5000, jitter: 0.2 }, failures), stopping.signal);
    }
  };

  return {
    isListening: () => isHearing,
    start: () => void (running = keepListening()),
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

/** Notifies the listener of this process, to see whether it hears. */
function createEcho(db: Queryable) {
  const payload = `echo:${randomUUID()}`;
  let heard = withResolvers<void>();

  const isHeard = async (signal: AbortSignal): Promise<boolean> => {
    heard = withResolvers();
    await db.query(sql`SELECT pg_notify(${pgChannel}, ${payload})`);
    return Promise.race([heard.promise.then(() => true), sleep(echoWithinMs, signal).then(() => false)]);
  };

  return {
    payload,
    heard: () => heard.resolve(),
    /** Ends with an error when nothing was heard. */
    async watch(signal: AbortSignal, onHeard: () => void): Promise<Error | undefined> {
      while (!signal.aborted) {
        // A pool that cannot send says nothing about the listener.
        const hears = await isHeard(signal).catch(() => null);
        if (hears === false && !signal.aborted) return new DeafListenerError();
        if (hears === true) onHeard();
        await sleep(hears === null ? echoWithinMs : echoEveryMs, signal);
      }
      return undefined;
    },
  };
}

class DeafListenerError extends Error {
  constructor() {
    super('LISTEN receives no notifications: set database.direct_url if the database is behind a pooler');
  }
}

/**
 * Announces in `platform.idle_workers` that somebody waits on a channel, so that writers notify. One announcement holds
 * for a while, so a loop that polls often does not write each time. Without one, polling finds the work.
 */
function createAnnouncements(
  db: Database,
  worker: string,
  isListening: () => boolean,
): (channel: string, pollMs: number) => Promise<void> {
  const announcedUntil = new Map<string, number>();
  return async (channel, pollMs) => {
    const now = performance.now();
    const isIdle = pollMs >= idleWait.fromMs && isListening();
    const forMs = Math.max(pollMs, isIdle ? idleWait.announcedForMs : announcedForMs);
    if ((announcedUntil.get(channel) ?? 0) >= now + pollMs) return;
    announcedUntil.set(channel, now + forMs);
    await announceIdle(db, { channel, worker, forMs }).catch(() => announcedUntil.delete(channel));
  };
}

/**
 * Wakes the waiters of the channel in every process when this transaction commits. It notifies only if somebody waits,
 * because PostgreSQL commits transactions that notify one after another.
 */
export async function notify(tx: Queryable, channel: string): Promise<void> {
  await tx.query(sql`
    SELECT pg_notify(${pgChannel}, ${channel})
    WHERE EXISTS (
      SELECT 1 FROM platform.idle_workers WHERE channel = ${channel} AND idle_until > clock_timestamp())`);
}

async function announceIdle(
  db: Queryable,
  { channel, worker, forMs }: Readonly<{ channel: string; worker: string; forMs: number }>,
): Promise<void> {
  await db.query(sql`
    INSERT INTO platform.idle_workers (channel, worker, idle_until)
    VALUES (${channel}, ${worker}, clock_timestamp() + ${forMs} * interval '1 millisecond')
    ON CONFLICT (channel, worker) DO UPDATE SET idle_until = EXCLUDED.idle_until`);
}
