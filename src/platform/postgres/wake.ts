import { backoffMs } from '../../kernel/backoff.ts';
import { sleep } from '../../kernel/clock.ts';
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

export function createWake(
  db: Database,
  options: Readonly<{ listen: boolean; onError: (error: unknown) => void }>,
): Wake {
  const waiting = new Map<string, Set<() => void>>();
  const stopping = new AbortController();
  let connection: DedicatedConnection | undefined;
  let running = Promise.resolve();

  const wakeUp = (channel: string): void => {
    for (const go of waiting.get(channel) ?? []) go();
  };

  const keepListening = async (): Promise<void> => {
    for (let failures = 0; !stopping.signal.aborted;) {
      const ended = Promise.withResolvers<Error | undefined>();
      try {
        connection = await db.connect(ended.resolve);
        await connection.listen(pgChannel, wakeUp);
        failures = 0;
        // Whatever was notified while nobody listened is found by looking once.
        for (const channel of waiting.keys()) wakeUp(channel);
        const error = await ended.promise;
        if (error !== undefined && !stopping.signal.aborted) options.onError(error);
      } catch (error) {
        if (!stopping.signal.aborted) options.onError(error);
      }
      connection = undefined;
      failures += 1;
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
      await connection?.close().catch(() => {});
      await running;
    },
    async wait(channel, pollMs, signal) {
      if (signal.aborted) return;
      const set = waiting.get(channel) ?? new Set();
      waiting.set(channel, set);
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

/** Wakes whoever waits on the channel, in every process, when this transaction commits. */
export async function notify(tx: Queryable, channel: string): Promise<void> {
  await tx.query(sql`SELECT pg_notify(${pgChannel}, ${channel})`);
}
