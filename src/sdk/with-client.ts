import { isLostConnection } from '../platform/postgres/sqlstate.ts';
import type { PostgresClient } from './postgres-pool.ts';

/** The connection does not go back to the pool. */
export type Discard = (error: Error) => void;

export async function withClient<T>(
  connect: () => Promise<PostgresClient>,
  work: (client: PostgresClient, discard: Discard) => Promise<T>,
): Promise<T> {
  const client = await connect();
  let broken: Error | undefined;
  const discard: Discard = (error) => void (broken ??= error);
  // Without a listener, a connection that is lost while idle would crash the process.
  client.on('error', discard);
  try {
    return await work(client, discard);
  } catch (error) {
    if (isLostConnection(error)) discard(error);
    throw error;
  } finally {
    client.off('error', discard);
    client.release(broken);
  }
}
