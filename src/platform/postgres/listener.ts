import { escapeIdentifier, type Client } from 'pg';
import type { Connections } from './connections.ts';
import type { DedicatedConnection } from './database.ts';

/**
 * A connection of its own for LISTEN. With a new login another one listens before this one ends, so that no notification
 * is lost; some arrive twice. If that fails, the old one listens until it breaks, and then `onEnd` tells its user.
 */
export async function openListener(
  connections: Connections,
  onEnd: (error: Error | undefined) => void,
): Promise<DedicatedConnection> {
  const handlers = new Map<string, (payload: string) => void>();
  let isClosed = false;
  let renewing = Promise.resolve();

  const open = async (): Promise<Client> => {
    let last: Error | undefined;
    const client = await connections.withFallback(async ({ newDirectClient }) => {
      const fresh = newDirectClient();
      fresh.on('error', (error) => void (last = error));
      await fresh.connect();
      return fresh;
    });
    client.on('notification', ({ channel, payload }) => handlers.get(channel)?.(payload ?? ''));
    client.on('end', () => {
      if (client !== current) return;
      stopRenewing();
      onEnd(last);
    });
    return client;
  };

  const renew = async (): Promise<void> => {
    if (isClosed) return;
    const fresh = await open();
    try {
      for (const channel of handlers.keys()) await listenTo(fresh, channel);
    } catch (error) {
      await fresh.end();
      throw error;
    }
    const old = current;
    current = fresh;
    await old.end();
    if (isClosed) await fresh.end();
  };

  let current = await open();
  const stopRenewing = connections.onNewLogin(() => {
    renewing = renewing.then(renew).catch(() => {});
  });
  return {
    async listen(channel, onPayload) {
      handlers.set(channel, onPayload);
      await listenTo(current, channel);
    },
    async close() {
      isClosed = true;
      stopRenewing();
      await current.end();
    },
  };
}

async function listenTo(client: Client, channel: string): Promise<void> {
  await client.query(`LISTEN ${escapeIdentifier(channel)}`);
}
