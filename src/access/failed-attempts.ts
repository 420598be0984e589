import { AppError } from '../kernel/errors.ts';
import type { Authenticate } from '../platform/http/access/guard-access.ts';
import { clientNetworkOf } from '../platform/http/client-address.ts';

const maxFailures = 10;
const windowMs = 60_000;
const maxAddresses = 10_000;

/**
 * Answers 429 instead of 401 to an address that sent ten wrong tokens within a minute. Valid tokens from the same
 * address still work: many callers may share the address of a proxy. A request without a token counts for nothing.
 */
export function limitFailures(authenticate: Authenticate): Authenticate {
  let counts = new Map<string, number>();
  let endsAtMs = 0;

  const count = (address: string): number => {
    const nowMs = performance.now();
    if (nowMs >= endsAtMs || counts.size >= maxAddresses) {
      counts = new Map();
      endsAtMs = nowMs + windowMs;
    }
    const failures = (counts.get(address) ?? 0) + 1;
    counts.set(address, failures);
    return failures;
  };

  return async (request) => {
    try {
      return await authenticate(request);
    } catch (error) {
      const isWrong =
        error instanceof AppError &&
        error.kind === 'unauthenticated' &&
        error.code !== 'SYS_AUTH_MISSING_TOKEN';
      if (!isWrong || count(clientNetworkOf(request)) <= maxFailures) throw error;
      throw new AppError(
        'SYS_RATE_LIMIT_EXCEEDED',
        'rate_limited',
        'too many requests with a wrong token; try again later',
        { retryAfterMs: endsAtMs - performance.now(), cause: error },
      );
    }
  };
}
