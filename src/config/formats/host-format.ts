import { BlockList, isIP } from 'node:net';

import { text, type Format } from './format.ts';

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** Whether only this machine can reach a server that listens on the host. */
export function isLoopback(host: string): boolean {
  const family = isIP(host);
  if (family === 0) return host.toLowerCase() === 'localhost';
  return loopback.check(host, family === 4 ? 'ipv4' : 'ipv6');
}

/** Underscores are no part of a host name by the letter, but container networks use them. */
const isHost = (value: string): boolean =>
  value.length <= 253 && (isIP(value) > 0 || /^[a-z\d]([a-z\d._-]*[a-z\d.])?$/i.test(value));

export const host = (): Format<string> => text('a host name or an IP address', isHost);

/** PostgreSQL is also reached by the folder of its Unix socket. */
export const databaseHost = (): Format<string> =>
  text(
    'a host name, an IP address or the folder of a socket',
    (value) => value.startsWith('/') || isHost(value),
  );

export const hostAndPort = (): Format<string> =>
  text('host:port', (value) => {
    const [, bracketed, plain = bracketed, port] = /^(?:\[(.+)\]|([^:[\]]+)):(\d{1,5})$/.exec(value) ?? [];
    return plain !== undefined && isHost(plain) && Number(port) >= 1 && Number(port) <= 65_535;
  });

export const webUrl = (): Format<string> =>
  text('an http:// or https:// URL', (value) => /^https?:\/\//i.test(value) && URL.canParse(value));
