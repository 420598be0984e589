import { createServer, request } from 'node:http';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';

/** A reverse proxy that serves a server below a path, and streams what it answers. */
export type PrefixProxy = Readonly<{
  /** With the prefix. */
  url: string;
  /** Starts to pass requests on. */
  serve(target: string): void;
  /** Paths that were asked for outside of the prefix. */
  outside: readonly string[];
  stop(): Promise<void>;
}>;

export async function startPrefixProxy(prefix: string): Promise<PrefixProxy> {
  const outside: string[] = [];
  let target: string | undefined;
  const proxy = createServer((incoming, answer) => {
    const path = incoming.url ?? '/';
    if (!path.startsWith(`${prefix}/`) || target === undefined) {
      outside.push(path);
      answer.writeHead(404).end();
      return;
    }
    const { method, headers } = incoming;
    const outgoing = request(target + path.slice(prefix.length), { method, headers }, (got) => {
      answer.writeHead(got.statusCode ?? 502, got.headers);
      got.pipe(answer);
    });
    outgoing.on('error', () => answer.destroy());
    answer.on('close', () => outgoing.destroy());
    incoming.pipe(outgoing);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const { port } = proxy.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}${prefix}`,
    serve: (to) => {
      target = to;
    },
    outside,
    async stop() {
      proxy.closeAllConnections();
      proxy.close();
      await once(proxy, 'close');
    },
  };
}
