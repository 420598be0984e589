import { backoffMs } from '../../kernel/backoff.ts';
import { onceAborted, sleep } from '../../kernel/clock.ts';
import type { Service } from '../../kernel/service.ts';
import type { Database, DedicatedConnection, Queryable } from './database.ts';
import { sql } from './sql.ts';

/**
 * Wakes waiting loops by NOTIFY, over one connection a process. It only ever makes things faster: a loop that
 * waits here also polls, so a lost notification, a listener that reconnects or a pooler without LISTEN costs
 * one poll interval and nothing else.
 */
export type Wake = Service &
  Readonly<{
    /** Resolves on a notification for the channel, after `pollMs`, or when the signal aborts. */
    wait(channel: string, pollMs: number, signal: AbortSignal): Promise<void>;
    isListening(): boolean;
  }>;

const pgChannel = 'redrive';
const announcedForMs = 3000;

export function createWake(
  db: Database,
  options: Readonly<{ listen: boolean; worker: string; onError: (error: unknown) => void }>,
): Wake {
  const waiting = new Map<string, Set<() => void>>();
  const missed = new Set<string>();
  const announcedUntil = new Map<string, number>();
  const stopping = new AbortController();
  let connection: DedicatedConnection | undefined;
  let running = Promise.resolve();

  const wakeUp = (channel: string): void => {
    const waiters = waiting.get(channel);
    if (waiters === undefined) return;
    // Whoever is just looking, and would wait next, may have looked too early.
    if (waiters.size === 0) missed.add(channel);
    for (const go of waiters) go();
  };

  // Who polls often need not write each time: one word holds for a while, and a few notifications too many do no
  // harm. Who is not announced finds out by polling, so a failure here costs nothing else.
  const announce = async (channel: string, pollMs: number): Promise<void> => {
    const now = performance.now();
    const forMs = Math.max(pollMs, announcedForMs);
    if ((announcedUntil.get(channel) ?? 0) >= now + pollMs) return;
    announcedUntil.set(channel, now + forMs);
    await announceIdle(db, { channel, worker: options.worker, forMs }).catch(() =>
      announcedUntil.delete(channel),
    );
  };

  const listenOnce = async (): Promise<void> => {
    const ended = Promise.withResolvers<Error | undefined>();
    const fresh = await db.connect(ended.resolve);
    try {
      if (stopping.signal.aborted) return;
      await fresh.listen(pgChannel, wakeUp);
      connection = fresh;
      // Whatever was notified while nobody listened is found by looking once.
      for (const channel of waiting.keys()) wakeUp(channel);
      const error = await Promise.race([ended.promise, onceAborted(stopping.signal)]);
      if (error !== undefined) throw error;
    } finally {
      connection = undefined;
      await fresh.close().catch(() => {});
    }
  };

  const keepListening = async (): Promise<void> => {
    for (let failures = 0; !stopping.signal.aborted;) {
      const begin = performance.now();
      await listenOnce().catch((error: unknown) => {
        if (!stopping.signal.aborted) options.onError(error);
      });
      // A connection that held for a while was a good one: begin again at once.
      failures = performance.now() - begin > 60_000 ? 1 : failures + 1;
      await sleep(backoffMs({ initialMs: 100, maxMs: 5000, jitter: 0.2 }, failures), stopping.signal);
    }
  };

  return {
    name: 'wake',
    isListening: () => connection !== undefined,
    async start() {
      if (options.listen) running = keepListening();
    },
    async stop() {
      stopping.abort();
      await running;
    },
    async wait(channel, pollMs, signal) {
      if (signal.aborted) return;
      const set = waiting.get(channel) ?? new Set();
      waiting.set(channel, set);
      await announce(channel, pollMs);
      if (missed.delete(channel) || signal.aborted) return;
      await new Promise<void>((resolve) => {
        const done = (): void => {
          clearTimeout(timer);
          signal.removeEventListener('abort', done);
          set.delete(done);
          resolve();
        };
        const timer = setTimeout(done, pollMs);
        signal.addEventListener('abort', done, { once: true });
        set.add(done);
      });
    },
  };
}

/**
 * Wakes whoever waits on the channel, in every process, when this transaction commits. Only if somebody does:
 * PostgreSQL commits transactions that notify one after another.
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
