import type { FastifyRequest } from 'fastify';
import { HttpFault } from '../errors/http-fault.ts';

/** Whether a host name, without port, belongs to this server. */
export type AcceptsHost = (name: string) => boolean;

export type OriginRules = Readonly<{
  acceptsHost: AcceptsHost;
  /**
   * `local` and `none`: without authentication, so a page in a browser could do everything. `required`: a page can do
   * only what the cookie of a session allows.
   */
  mode: 'local' | 'none' | 'required';
  /** How the names of our cookies begin; null without sessions. */
  cookiePrefix: string | null;
  /** The origin of `server.public_url`. */
  publicOrigin: string | null;
}>;

const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Probes and scrapers use any address, and these paths hold no secrets. */
const OPEN_TO_ANY_HOST: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics']);

/** What the console sends with every request that changes something. A page of another origin cannot. */
const CONSOLE_HEADER = 'x-redrive-console';

/**
 * Rejects requests that a web page of another site may have made in a user's browser. Without a login, and with the
 * cookie of a session, the browser itself would be the proof of who calls, so we rely on headers that it sets and that
 * pages cannot change:
 * - `Host` protects from DNS rebinding: the browser considers such a page same-origin, but the Host header has the
 *   page's name, which is not ours.
 * - `Sec-Fetch-Site`, or `Origin` in browsers without it: a page of another origin, also on another port of this
 *   machine.
 * - `x-redrive-console`: forms and simple requests cannot set a header, and for others the browser asks first.
 * A program that proves who it is with `Authorization` is exempt. Without a login it is not, because a rebound page may
 * send that header.
 */
export function requestFaultOf(request: FastifyRequest, rules: OriginRules): HttpFault | undefined {
  const { raw, headers } = request;
  const { host } = headers;
  if (host === undefined) {
    return raw.httpVersion === '1.1' ? new HttpFault(400, 'the request has no host header') : undefined;
  }
  if (hasRepeatedHost(raw.rawHeaders)) return new HttpFault(400, 'the request has more than one host header');
  const isProbe = OPEN_TO_ANY_HOST.has(request.routeOptions.url ?? '');
  const name = hostNameOf(host);
  if (name === undefined && !isProbe) return new HttpFault(400, 'the host header is not a host name');
  if (isTrustedByItself(request, rules)) return undefined;
  if (name !== undefined && !isProbe) {
    if (!rules.acceptsHost(name)) return unknownHost(name);
    if (rules.mode === 'local' && hasPassedProxy(headers)) return passedProxy;
  }
  return isFromBrowser(headers, rules) ? browserFaultOf(request, host, rules) : undefined;
}

/** Neither a cookie nor the place of the caller counts. */
function isTrustedByItself(request: FastifyRequest, { mode, cookiePrefix }: OriginRules): boolean {
  if (mode !== 'required') return false;
  return (
    request.headers.authorization !== undefined || cookiePrefix === null || !hasCookie(request, cookiePrefix)
  );
}

function hasCookie({ headers, server }: FastifyRequest, prefix: string): boolean {
  return Object.keys(server.parseCookie(headers.cookie ?? '')).some((name) => name.startsWith(prefix));
}

/** Behind a proxy on the same machine everybody would be the local principal. */
function hasPassedProxy(headers: FastifyRequest['headers']): boolean {
  return Object.keys(headers).some((name) => /^(forwarded|x-forwarded-.*|x-real-ip)$/.test(name));
}

const passedProxy = new HttpFault(
  403,
  'the request has passed a proxy, but this server asks nobody who they are: configure auth.oidc or auth.jwt, or set auth.mode to none if the proxy asks',
);

/** Node's own fetch sends `Sec-Fetch-Mode`; browsers send the other two as well. */
function isFromBrowser(headers: FastifyRequest['headers'], { mode }: OriginRules): boolean {
  if (mode === 'required') return true;
  return ['origin', 'sec-fetch-site', 'sec-fetch-dest'].some((name) => headers[name] !== undefined);
}

function browserFaultOf(
  { raw, headers, routeOptions }: FastifyRequest,
  host: string,
  { publicOrigin }: OriginRules,
): HttpFault | undefined {
  if (SAFE_METHODS.has(raw.method ?? '')) {
    const isData = routeOptions.url?.startsWith('/api/') === true;
    return isData && isNamedForeign(headers['sec-fetch-site']) ? foreign : undefined;
  }
  if (!isFromOurOrigin(headers, host, publicOrigin)) return foreign;
  if (headers[CONSOLE_HEADER] === '1') return undefined;
  return withoutHeader;
}

const withoutHeader = new HttpFault(
  403,
  `a browser's request that changes something needs the header ${CONSOLE_HEADER}: 1`,
);
const foreign = new HttpFault(403, 'cross-origin requests are not allowed');

function isNamedForeign(site: string | string[] | undefined): boolean {
  return site !== undefined && site !== 'same-origin' && site !== 'none';
}

function isFromOurOrigin(
  headers: FastifyRequest['headers'],
  host: string,
  publicOrigin: string | null,
): boolean {
  const { origin } = headers;
  const site = headers['sec-fetch-site'];
  if (site === 'same-origin') return true;
  if (isNamedForeign(site)) return false;
  if (origin === undefined) return site === 'none';
  return publicOrigin === null ? isOriginOf(origin, host) : origin === publicOrigin;
}

function unknownHost(name: string): HttpFault {
  const known = 'use localhost or 127.0.0.1, or add the name to server.allowed_hosts';
  return new HttpFault(421, `unknown host ${name.slice(0, 100)}; ${known}`);
}

function hasRepeatedHost(rawHeaders: readonly string[]): boolean {
  return rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'host').length > 1;
}

/** In lower case, without port, brackets and final dot; undefined if invalid. */
function hostNameOf(host: string): string | undefined {
  if (!/^[^\s/?#@\\]+$/.test(host)) return undefined;
  const url = URL.parse(`http://${host}`);
  return url?.hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '');
}

/** The scheme is not compared, because a proxy may terminate TLS. It only gives the default port. */
function isOriginOf(origin: string, host: string): boolean {
  const url = URL.parse(origin);
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') return false;
  return url.host === URL.parse(`${url.protocol}//${host}`)?.host;
}
