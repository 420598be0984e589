import { createHash } from 'node:crypto';

/**
 * Cookies belong to a host, whatever the port and the path. `__Host-` makes browsers accept them only over TLS and for
 * exactly this host; on http loopback they have no prefix. The name carries a hash of the path of the public URL, because
 * several servers may share a host under different paths.
 */
export type CookieNames = Readonly<{
  isSecure: boolean;
  /** How all of them begin. */
  prefix: string;
  session: string;
  /** Of the login with this number. */
  login: (slot: number) => string;
}>;

/** A browser may begin this many logins at a time, in several tabs; one more replaces the oldest. */
export const maxLogins = 5;

export function cookieNamesFor(publicUrl: string): CookieNames {
  const { protocol, pathname } = new URL(publicUrl);
  const isSecure = protocol === 'https:';
  const path = pathname.replace(/\/+$/, '');
  const suffix = path === '' ? '' : `-${createHash('sha256').update(path).digest('hex').slice(0, 8)}`;
  const session = `${isSecure ? '__Host-' : ''}redrive${suffix}`;
  return { isSecure, prefix: session, session, login: (slot) => `${session}-login-${slot}` };
}
