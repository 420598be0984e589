import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Metrics } from '../telemetry/metrics.ts';
import { securityHeaders } from './guards/security-headers.ts';
import { bindAddressOf, httpAddress, type HttpAddress } from './listen.ts';

export type MetricsServer = Readonly<{
  /** Rejects if it cannot listen. */
  start(): Promise<void>;
  stop(): Promise<void>;
  /** Undefined while it does not listen. */
  address(): HttpAddress | undefined;
}>;

const headTimeoutMs = 5000;
/** Scrapers are few. */
const maxConnections = 50;

/**
 * `GET /metrics` on a port of its own, for a scraper without a token: who reaches the port reads the metrics, and
 * nothing else. It asks nothing of the application, so it also answers while that waits or is overloaded.
 */
export function createMetricsServer(
  options: Readonly<{ host: string; port: number; metrics: Pick<Metrics, 'render' | 'contentType'> }>,
): MetricsServer {
  const { host, port, metrics } = options;
  const server = createServer(
    { maxHeaderSize: 8192, headersTimeout: headTimeoutMs, requestTimeout: headTimeoutMs },
    (request, response) => void answer(metrics, request, response),
  );
  server.maxConnections = maxConnections;
  return {
    async start() {
      server.listen({ host: bindAddressOf(host), port });
      await once(server, 'listening');
    },
    async stop() {
      if (!server.listening) return;
      server.close();
      server.closeAllConnections();
      await once(server, 'close');
    },
    address: () => addressOf(server),
  };
}

async function answer(
  metrics: Pick<Metrics, 'render' | 'contentType'>,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const { method, url = '' } = request;
  const send = (status: number, text: string, headers: Readonly<Record<string, string>> = {}): void =>
    void response
      .writeHead(status, { ...securityHeaders, 'content-type': 'text/plain; charset=utf-8', ...headers })
      .end(method === 'HEAD' ? undefined : text);
  if (url.split('?')[0] !== '/metrics') return send(404, 'only /metrics is here\n');
  if (method !== 'GET' && method !== 'HEAD')
    return send(405, 'the method must be GET\n', { allow: 'GET, HEAD' });
  try {
    send(200, await metrics.render(), { 'content-type': metrics.contentType });
  } catch {
    // The error's text may say something about the inside.
    send(500, 'the metrics could not be rendered\n');
  }
}

function addressOf(server: Server): HttpAddress | undefined {
  const bound = server.address();
  return bound === null || typeof bound === 'string' ? undefined : httpAddress(bound);
}
