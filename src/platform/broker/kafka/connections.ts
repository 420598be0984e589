import type { Socket } from 'node:net';
import { apiVersionsV3, Connection, ConnectionStatuses, type ConnectionOptions } from '@platformatic/kafka';
import { AppError } from '../../../kernel/errors.ts';
import { within, type Deadline } from './deadline.ts';

export type Endpoint = Readonly<{ host: string; port: number }>;

/** An open connection, and what the broker behind it can do. */
export type Link = Readonly<{
  connection: Connection;
  apis: ReadonlyMap<number, apiVersionsV3.ApiVersionsResponseApi>;
}>;

/** One connection per broker, made when it is needed and made again after it was lost. */
export type Connections = Readonly<{
  /** Asks over the broker's connection; one that lets the deadline pass is dropped, so that nobody waits on it again. */
  ask<T>(
    endpoint: Endpoint,
    deadline: Deadline,
    what: string,
    question: (link: Link) => Promise<T>,
  ): Promise<T>;
  close(): void;
}>;

const software = ['redrive', '1'] as const;

export const endpointKey = ({ host, port }: Endpoint): string => `${host}:${port}`;

/** A connection from the moment it is begun, so that those who come while it is made wait for it too. */
type Held = Readonly<{ connection: Connection; link: Promise<Link> }>;

export function createConnections(clientId: string, options: ConnectionOptions): Connections {
  const held = new Map<string, Held>();

  /** Does nothing when another connection has taken its place. */
  const drop = (key: string, connection: Connection): void => {
    if (held.get(key)?.connection !== connection) return;
    held.delete(key);
    end(connection);
  };

  const begin = (endpoint: Endpoint): Held => {
    const key = endpointKey(endpoint);
    const connection = new Connection(clientId, options);
    const lost = (): void => drop(key, connection);
    connection.on('error', lost);
    connection.on('close', lost);
    const begun = { connection, link: establish(connection, endpoint) };
    held.set(key, begun);
    begun.link.catch(lost);
    return begun;
  };

  /** Finds or begins the connection before it first waits: however many ask at once, they share one. */
  const get = async (endpoint: Endpoint): Promise<Link> => {
    const link = await (held.get(endpointKey(endpoint)) ?? begin(endpoint)).link;
    if (link.connection.status === ConnectionStatuses.REAUTHENTICATING) await link.connection.ready();
    return link;
  };

  let closed = false;
  return {
    ask: async (endpoint, deadline, what, question) => {
      if (closed) throw new AppError('SYS_BROKER_CLOSED', 'unavailable', 'the broker connection was closed');
      const key = endpointKey(endpoint);
      const link = await within(deadline, `connecting to ${key}`, get(endpoint));
      try {
        return await within(deadline, what, question(link));
      } catch (error) {
        const isSilent = error instanceof AppError && error.code === 'SYS_BROKER_TIMEOUT';
        if (isSilent) drop(key, link.connection);
        throw error;
      }
    },
    close: () => {
      closed = true;
      for (const { connection } of held.values()) end(connection);
      held.clear();
    },
  };
}

async function establish(connection: Connection, { host, port }: Endpoint): Promise<Link> {
  await connection.connect(host, port);
  const { apiKeys } = await apiVersionsV3.api.async(connection, ...software);
  return { connection, apis: new Map(apiKeys.map((api) => [api.apiKey, api])) };
}

/** Ends it now: a polite close waits for a broker that may never read again. */
function end(connection: Connection): void {
  connection.close(() => {});
  // The client's types do not know that there is none where it could not even begin to connect.
  const socket: Socket | undefined = connection.socket;
  socket?.destroy();
}
