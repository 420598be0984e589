import { BlockList, isIP } from 'node:net';

import { text, type About, type TextAbout } from './value.ts';

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

export const host = (about: About = {}) =>
  text({ what: 'a host name or an IP address', isValid: isHost, ...about });

/** PostgreSQL is also reached by the folder of its Unix socket. */
export const databaseHost = (about: About = {}) =>
  text({
    what: 'a host name, an IP address or the folder of a socket',
    isValid: (value) => value.startsWith('/') || isHost(value),
    ...about,
  });

export const hostAndPort = (about: About = {}) =>
  text({
    what: 'host:port',
    pattern: String.raw`^(\[.+\]|[^:[\]]+):\d{1,5}$`,
    isValid(value) {
      const [, bracketed, plain = bracketed, port] = /^(?:\[(.+)\]|([^:[\]]+)):(\d{1,5})$/.exec(value) ?? [];
      return plain !== undefined && isHost(plain) && Number(port) >= 1 && Number(port) <= 65_535;
    },
    ...about,
  });

const WEB_URL = '^[hH][tT][tT][pP][sS]?://';

export const webUrl = (about: About = {}) =>
  text({
    what: 'an http:// or https:// URL',
    pattern: WEB_URL,
    isValid: (value) => URL.canParse(value),
    ...about,
  });

/** The authority may not hold credentials: a URL is shown in lists and logs. A fragment would never be sent. */
export const callUrl = ({ rule, ...about }: TextAbout = {}) =>
  text({
    what: 'an http:// or https:// URL',
    pattern: String.raw`${WEB_URL}[^/\\?#]`,
    isValid: (value) => URL.canParse(value),
    rule(value) {
      const [authority = ''] = /^https?:\/\/[^/\\?#]*/i.exec(value) ?? [];
      if (authority.includes('@')) return 'must not hold a user or a password: put credentials into headers';
      return value.includes('#') ? 'must not have a fragment (#)' : rule?.(value);
    },
    ...about,
  });

/** Links are made by putting a path behind it. */
export const publicUrl = (about: About = {}) =>
  callUrl({ rule: (value) => (value.includes('?') ? 'must not have a query (?)' : undefined), ...about });
