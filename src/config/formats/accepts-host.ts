import { isIPv6 } from 'node:net';
import { isLoopback } from './host-format.ts';

type ServerNames = Readonly<{
  host: string;
  allowUnauthenticated: boolean;
  allowedHosts: readonly string[];
  publicUrl?: string | undefined;
}>;

/**
 * Which names in a Host header are ours: those of this machine, the address to listen on, the public URL's, and
 * those that are listed. A server that was opened to others without a list is reached under names nobody told us.
 */
export function acceptsHost({ host, allowUnauthenticated, allowedHosts, publicUrl }: ServerNames) {
  const isOpen = allowUnauthenticated && allowedHosts.length === 0;
  const names = new Set([host, ...allowedHosts].map((name) => nameIn(isIPv6(name) ? `[${name}]` : name)));
  if (publicUrl !== undefined) names.add(nameIn(new URL(publicUrl).host));
  return (name: string): boolean => isOpen || isLoopback(name) || names.has(name);
}

/** As a request's Host header is read: in lower case, addresses in their short form, without the dot of the root. */
function nameIn(host: string): string {
  const { hostname } = new URL(`http://${host}`);
  return hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
}
