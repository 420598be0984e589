import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/**
 * Everything that a server calls, in one HTTP server: a destination of orders, a target of jobs, a participant of sagas
 * and a receiver of notifications. A path that ends with `/refuse` answers 422, every other one 200.
 */
export type OutsideWorld = Readonly<{
  /** Makes a server use it. */
  env: Readonly<Record<string, string>>;
  /** The paths that were called, in their order. */
  calls: readonly string[];
  close(): Promise<void>;
}>;

export async function openOutsideWorld(): Promise<OutsideWorld> {
  const calls: string[] = [];
  const server = createServer((request, response) => {
    calls.push(request.url ?? '');
    const status = request.url?.endsWith('/refuse') === true ? 422 : 200;
    request.on('end', () => response.writeHead(status, { 'content-type': 'application/json' }).end('{}'));
    void text(request);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const http = { type: 'http', idempotency: 'enforced' };
  return {
    calls,
    env: {
      DLQ_AUTO_RETRY: JSON.stringify([{ name: 'soon', topics: ['automatic-*'], delay: '1s' }]),
      OUTBOX_DESTINATIONS: JSON.stringify({
        broker: { ...http, url: `${url}/orders` },
        picky: { ...http, url: `${url}/orders/refuse` },
      }),
      JOBS_QUEUES: JSON.stringify({
        pushed: { target: { type: 'http', url: `${url}/jobs` } },
        limited: { global_concurrency: 5, rate_limit: '100/s' },
      }),
      JOBS_CRON: JSON.stringify({ often: { schedule: '* * * * *', queue: 'pushed' } }),
      SERVICES: JSON.stringify({ shop: { type: 'http', base_url: `${url}/shop` } }),
      SAGA_WORKFLOW_DIR: '/nonexistent',
      NOTIFY: JSON.stringify([
        { name: 'hook', type: 'webhook', url: `${url}/hook`, secret: 'correct horse' },
      ]),
    },
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
