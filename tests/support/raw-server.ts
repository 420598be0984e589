import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import type { TestContext } from 'node:test';

/** A server that is told what to do with bytes; it ends with the test. */
export type RawServer = Readonly<{
  port: number;
  url: string;
  /** How many connections were made to it. */
  connections(): number;
}>;

export async function serveRaw(t: TestContext, onSocket: (socket: Socket) => void): Promise<RawServer> {
  const sockets = new Set<Socket>();
  let connections = 0;
  const server = createServer((socket) => {
    connections++;
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    onSocket(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  const { port } = server.address() as AddressInfo;
  return { port, url: `http://127.0.0.1:${port}/orders`, connections: () => connections };
}

/** Calls back when a request's head has arrived, once for each request on the connection. */
export function onRequest(socket: Socket, then: (nth: number) => void): void {
  let nth = 0;
  let seen = '';
  socket.setEncoding('latin1');
  socket.on('data', (text: string) => {
    seen += text;
    if (!seen.includes('\r\n\r\n')) return;
    seen = '';
    then(++nth);
  });
}

/** A port on which nobody listens. */
export async function unusedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
