import type { AddressInfo } from 'node:net';
import { codeOf } from '../../kernel/errors.ts';
import type { HttpApp } from './http-app.ts';

const MAX_PORTS_TRIED = 50;
const MAX_PORT = 65_535;

export type ListenOptions = Readonly<{
  host: string;
  /** 0 takes any free port. */
  port: number;
  onPortTaken: 'next' | 'fail';
}>;

export type HttpAddress = Readonly<{ host: string; port: number; url: string }>;

/** Listens on the port, or with `onPortTaken: 'next'` on the first free one after it. */
export async function listen(app: HttpApp, options: ListenOptions): Promise<void> {
  const host = bindAddressOf(options.host);
  const last = options.onPortTaken === 'next' ? Math.min(options.port + MAX_PORTS_TRIED - 1, MAX_PORT) : 0;
  for (let port = options.port; ; port += 1) {
    try {
      await app.listen({ host, port });
      return;
    } catch (error) {
      if (codeOf(error) !== 'EADDRINUSE' || port >= last) throw error;
    }
  }
}

/** For `localhost` Fastify would open a second server (::1) without our limits and error bodies. */
export function bindAddressOf(host: string): string {
  return host === 'localhost' ? '127.0.0.1' : host;
}

export function addressOf(app: HttpApp): HttpAddress | undefined {
  const bound = app.server.address();
  return bound === null || typeof bound === 'string' ? undefined : httpAddress(bound);
}

/** A URL that can be opened: loopback for the wildcard addresses. */
export function httpAddress({ address, port, family }: AddressInfo): HttpAddress {
  const reachable = address === '0.0.0.0' ? '127.0.0.1' : address === '::' ? '::1' : address;
  const host = family === 'IPv6' ? `[${reachable}]` : reachable;
  return { host: address, port, url: `http://${host}:${port}` };
}
