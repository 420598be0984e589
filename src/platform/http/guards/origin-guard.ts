import type { FastifyRequest } from 'fastify';
import { HttpFault } from '../errors/http-fault.ts';

/** Whether a host name, without port, belongs to this server. */
export type AcceptsHost = (name: string) => boolean;

const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD', 'OPTIONS']);

/** Probes and scrapers use any address, and these paths hold no secrets. */
const OPEN_TO_ANY_HOST: ReadonlySet<string> = new Set(['/healthz', '/readyz', '/metrics']);

/**
 * Rejects requests that a web page in a user's browser may have made. A server on loopback needs no login, so it relies
 * on headers that browsers set and pages cannot change:
 * - `Host` protects from DNS rebinding: the browser considers such a page same-origin, but the Host header has the
 *   page's name, which is not ours.
 * - `Sec-Fetch-Site`, or `Origin` in browsers without it: a page of another origin, also on another port of this
 *   machine.
 */
export function requestFaultOf(request: FastifyRequest, acceptsHost: AcceptsHost): HttpFault | undefined {
  const { raw, headers } = request;
  const { host } = headers;
  if (host === undefined) {
    return raw.httpVersion === '1.1' ? new HttpFault(400, 'the request has no host header') : undefined;
  }
  if (hasRepeatedHost(raw.rawHeaders)) return new HttpFault(400, 'the request has more than one host header');
  if (!OPEN_TO_ANY_HOST.has(request.routeOptions.url ?? '')) {
    const name = hostNameOf(host);
    if (name === undefined) return new HttpFault(400, 'the host header is not a host name');
    if (!acceptsHost(name)) return unknownHost(name);
  }
  if (!SAFE_METHODS.has(raw.method ?? '') && isFromAnotherOrigin(headers, host)) {
    return new HttpFault(403, 'cross-origin requests are not allowed');
  }
  return undefined;
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

function isFromAnotherOrigin(headers: FastifyRequest['headers'], host: string): boolean {
  switch (headers['sec-fetch-site']) {
    case 'same-origin':
      return false;
    case undefined:
    case 'none':
      return headers.origin !== undefined && !isOriginOf(headers.origin, host);
    default:
      return true;
  }
}

/** The scheme is not compared, because a proxy may terminate TLS. It only gives the default port. */
function isOriginOf(origin: string, host: string): boolean {
  const url = URL.parse(origin);
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') return false;
  return url.host === URL.parse(`${url.protocol}//${host}`)?.host;
}
