import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expressHandler, type Guarded } from '@redrive/client';

/** One participant: what it answers, by path. */
export type Service = Readonly<{
  name: string;
  routes: Readonly<Record<string, Guarded>>;
  stop(): Promise<void>;
}>;

export type RunningService = Readonly<{ url: string; stop(): Promise<void> }>;

/** On loopback; port 0 is any free one. Express would take the same handlers: `app.post(path, expressHandler(…))`. */
export async function serve({ routes, stop }: Service, port: number): Promise<RunningService> {
  const handlers = new Map(
    Object.entries(routes).map(([path, guarded]) => [path, expressHandler(guarded)] as const),
  );
  const server = createServer((request, response) => {
    const handler = request.method === 'POST' ? handlers.get(request.url ?? '') : undefined;
    if (handler === undefined) response.writeHead(404).end();
    else handler(request, response);
  });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async stop() {
      const closed = once(server, 'close');
      server.close().closeIdleConnections();
      await closed;
      await stop();
    },
  };
}
