import type { FastifyRequest } from 'fastify';
import type { HttpApp } from '../http-app.ts';

/**
 * What every answer tells a browser. An answer is data: it loads nothing, stands in no frame, is read by no other
 * origin and is not stored. Pages and their files replace the policy and `cache-control` in their routes.
 */
export const securityHeaders = {
  'x-content-type-options': 'nosniff',
  'content-security-policy':
    "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), geolocation=(), microphone=(), payment=(), usb=()',
  'cache-control': 'no-store',
} as const;

/** A year, and for the subdomains too, as ASVS asks. Browsers ignore it without TLS. */
const strictTransport = 'max-age=31536000; includeSubDomains';

/**
 * Adds the headers before anything else runs, so that refusals have them too. `strict-transport-security` is sent where
 * people reach the server by TLS: by its public URL, or by a trusted proxy that says so.
 */
export function addSecurityHeaders(app: HttpApp, isPublicByTls: boolean): void {
  app.addHook('onRequest', (request, reply, done) => {
    reply.headers(securityHeaders);
    if (isPublicByTls || isByTls(request)) reply.header('strict-transport-security', strictTransport);
    done();
  });
}

function isByTls({ protocol }: FastifyRequest): boolean {
  return protocol === 'https';
}
