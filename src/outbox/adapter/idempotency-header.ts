import type { IncomingHttpHeaders } from 'node:http';
import { invalidInput } from './invalid-input.ts';

/**
 * The header must be the body's key. Where a client sent it twice, Node has joined both with a comma and a blank,
 * and no key has a blank.
 */
export function requireSameKey(headers: IncomingHttpHeaders, idempotencyKey: string): void {
  if (headers['idempotency-key'] !== idempotencyKey)
    throw invalidInput('idempotency-key', 'mismatch', 'must be the idempotency_key of the body');
}
