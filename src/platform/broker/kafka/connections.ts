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

export function createConnections(clientId: string, options: ConnectionOptions): Connections {
  const links = new Map<string, Promise<Link>>();
  const open = new Set<Connection>();

  const connect = async (endpoint: Endpoint): Promise<Link> => {
    const connection = new Connection(clientId, options);
    open.add(connection);
    const lost = (): void => {
      if (open.delete(connection)) end(connection);
    };
    connection.on('error', lost);
    connection.on('close', lost);
    try {
      await connection.connect(endpoint.host, endpoint.port);
      const { apiKeys } = await apiVersionsV3.api.async(connection, ...software);
      return { connection, apis: new Map(apiKeys.map((api) => [api.apiKey, api])) };
    } catch (error) {
      lost();
      throw error;
    }
  };

  const reconnect = (endpoint: Endpoint): Promise<Link> => {
    const key = endpointKey(endpoint);
    const made = connect(endpoint);
    links.set(key, made);
    made.catch(() => {
      if (links.get(key) === made) links.delete(key);
    });
    return made;
  };

  const get = async (endpoint: Endpoint): Promise<Link> => {
    const link = await links.get(endpointKey(endpoint))?.catch(() => undefined);
    if (!link || !open.has(link.connection)) return await reconnect(endpoint);
    if (link.connection.status === ConnectionStatuses.REAUTHENTICATING) await link.connection.ready();
    return link;
  };

  let closed = false;
  return {
    ask: async (endpoint, deadline, what, question) => {
      if (closed) throw new AppError('SYS_BROKER_CLOSED', 'unavailable', 'the broker connection was closed');
      const link = await within(deadline, `connecting to ${endpointKey(endpoint)}`, get(endpoint));
      try {
        return await within(deadline, what, question(link));
      } catch (error) {
        const isSilent = error instanceof AppError && error.code === 'SYS_BROKER_TIMEOUT';
        if (isSilent && open.delete(link.connection)) end(link.connection);
        throw error;
      }
    },
    close: () => {
      closed = true;
      for (const connection of open) end(connection);
      open.clear();
    },
  };
}

/** Ends it now: a polite close waits for a broker that may never read again. */
function end(connection: Connection): void {
  connection.close(() => {});
  connection.socket.destroy();
}
