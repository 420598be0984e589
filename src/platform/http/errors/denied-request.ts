import type { FastifyRequest } from 'fastify';
import { AppError } from '../../../kernel/errors.ts';

/** A request that was refused because of who sent it, with the code of the error. */
export type OnDenied = (request: FastifyRequest, code: string) => void;

/**
 * The code if the error refuses a request because of who sent it: a wrong token or key, or a missing permission. A
 * request without any token is not one: every visitor sends it before the first login.
 */
export function denialCodeOf(error: unknown): string | null {
  if (!(error instanceof AppError)) return null;
  // A wrong token above the limit of its address.
  if (error.kind === 'rate_limited') return denialCodeOf(error.cause);
  const isDenied =
    error.kind === 'forbidden' ||
    (error.kind === 'unauthenticated' && error.code !== 'SYS_AUTH_MISSING_TOKEN');
  return isDenied ? error.code : null;
}
