import { isIP, isIPv6 } from 'node:net';
import type { FastifyRequest } from 'fastify';

type Addressed = Pick<FastifyRequest, 'ip'> & Readonly<{ raw: Pick<FastifyRequest['raw'], 'socket'> }>;

/**
 * The address of the client, for limits, logs and the audit log: the peer of the connection, or behind proxies of
 * `server.trusted_proxies` the address that the first of them saw. What a proxy passes on may be anything; if it is not
 * an address, the peer's is used.
 */
export function clientAddressOf({ ip, raw: { socket } }: Addressed): string {
  return plainAddress(ip) ?? plainAddress(socket.remoteAddress ?? '') ?? 'unknown';
}

/** The network that counts as one client: a client of IPv6 usually has a whole /64 of addresses. */
export function clientNetworkOf(request: Addressed): string {
  const address = clientAddressOf(request);
  if (!isIPv6(address) || address.includes('.')) return address;
  const [head = '', tail] = address.split('::');
  const first = head.split(':').filter((group) => group !== '');
  const last = (tail ?? '').split(':').filter((group) => group !== '');
  const zeros = tail === undefined ? 0 : 8 - first.length - last.length;
  const groups = [...first, ...Array.from({ length: zeros }, () => '0'), ...last].slice(0, 4);
  return `${groups.map((group) => group.replace(/^0+(?=.)/, '')).join(':')}::/64`;
}

/** Without port, brackets and zone, in lower case, and IPv4 as IPv4. Some proxies pass on the port too. */
function plainAddress(text: string): string | undefined {
  const [, bracketed, ipv4] = /^(?:\[([^\]]+)\](?::\d{1,5})?|([\d.]+):\d{1,5})$/.exec(text) ?? [];
  const address = (bracketed ?? ipv4 ?? text).replace(/%[^]*$/, '').toLowerCase();
  if (isIP(address) === 0) return undefined;
  return address.replace(/^::ffff:(?=\d+\.)/, '');
}
