import { isIP, type Socket } from 'node:net';
import { apiVersionsV3, Connection, ConnectionStatuses, type ConnectionOptions } from '@platformatic/kafka';
import { AppError } from '../../../kernel/errors.ts';
import { within, type Deadline } from './deadline.ts';

export type Endpoint = Readonly<{ host: string; port: number }>;

/** An open connection, and the APIs that its broker supports. */
export type Link = Readonly<{
  connection: Connection;
  apis: ReadonlyMap<number, apiVersionsV3.ApiVersionsResponseApi>;
}>;

/** One connection per broker, opened on demand and opened again after it was lost. */
export type Connections = Readonly<{
  /** Sends a request on the broker's connection. A connection that lets the deadline pass is closed. */
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

/** Also while it is being opened, so that concurrent callers wait for the same connection. */
type Opening = Readonly<{ connection: Connection; link: Promise<Link> }>;

export function createConnections(clientId: string, options: ConnectionOptions): Connections {
  const open = new Map<string, Opening>();

  /** Does nothing if the connection was replaced already. */
  const drop = (key: string, connection: Connection): void => {
    if (open.get(key)?.connection !== connection) return;
    open.delete(key);
    end(connection);
  };

  const begin = (endpoint: Endpoint): Opening => {
    const key = endpointKey(endpoint);
    const connection = new Connection(clientId, { ...options, ...serverName(options, endpoint) });
    const lost = (): void => drop(key, connection);
    connection.on('error', lost);
    connection.on('close', lost);
    const begun = { connection, link: establish(connection, endpoint) };
    open.set(key, begun);
    begun.link.catch(lost);
    return begun;
  };

  /** Finds or opens the connection before the first await, so that concurrent callers share one. */
  const opened = (endpoint: Endpoint): Promise<Link> =>
    (open.get(endpointKey(endpoint)) ?? begin(endpoint)).link;

  /**
   * A broker may ask a connection to authenticate again, but not as another user. After the user has changed that
   * fails, and only a new connection works.
   */
  const get = async (endpoint: Endpoint): Promise<Link> => {
    const link = await opened(endpoint);
    if (link.connection.status !== ConnectionStatuses.REAUTHENTICATING) return link;
    try {
      await link.connection.ready();
      return link;
    } catch {
      drop(endpointKey(endpoint), link.connection);
      return opened(endpoint);
    }
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
      for (const { connection } of open.values()) end(connection);
      open.clear();
    },
  };
}

/** TLS names the host that it wants, which must not be an address (RFC 6066). The certificate is checked for either. */
function serverName({ tls }: ConnectionOptions, { host }: Endpoint): ConnectionOptions {
  return tls === undefined || isIP(host) !== 0 ? {} : { tlsServerName: tls.servername ?? host };
}

async function establish(connection: Connection, { host, port }: Endpoint): Promise<Link> {
  await connection.connect(host, port);
  const { apiKeys } = await apiVersionsV3.api.async(connection, ...software);
  return { connection, apis: new Map(apiKeys.map((api) => [api.apiKey, api])) };
}

/** Destroys the socket: a graceful close waits for a broker that may never answer. */
function end(connection: Connection): void {
  connection.close(() => {});
  // Despite its type it is undefined if the connection attempt has not started.
  const socket: Socket | undefined = connection.socket;
  socket?.destroy();
}
