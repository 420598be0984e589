import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';

/** The caller's `x-request-id` if it is printable ASCII, else a new one. */
export function requestIdOf(headers: IncomingHttpHeaders): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && /^[\x20-\x7e]{1,128}$/.test(given) ? given : newRequestId();
}

export function newRequestId(): string {
  return `req_${randomBytes(6).toString('hex')}`;
}
