import { AppError } from '../kernel/errors.ts';
import { createRateLimiter } from '../platform/http/guards/rate-limiter.ts';
import type { Authenticate } from '../platform/http/access/guard-access.ts';
import { clientNetworkOf } from '../platform/http/client-address.ts';

const maxFailuresPerMinute = 10;

/**
 * Answers 429 instead of 401 to an address that sent ten wrong tokens within a minute. Valid tokens from the same
 * address still work: many callers may share the address of a proxy. A request without a token counts for nothing.
 */
export function limitFailures(authenticate: Authenticate): Authenticate {
  const failures = createRateLimiter({ perMinute: maxFailuresPerMinute });
  return async (request, isUse) => {
    // Not an attempt of the caller.
    if (!isUse) return authenticate(request, isUse);
    try {
      return await authenticate(request, isUse);
    } catch (error) {
      const isWrong =
        error instanceof AppError &&
        error.kind === 'unauthenticated' &&
        error.code !== 'SYS_AUTH_MISSING_TOKEN';
      const retryAfterMs = isWrong ? failures.take(clientNetworkOf(request)) : 0;
      if (retryAfterMs === 0) throw error;
      throw new AppError(
        'SYS_RATE_LIMIT_EXCEEDED',
        'rate_limited',
        'too many requests with a wrong token; try again later',
        { retryAfterMs, cause: error },
      );
    }
  };
}
