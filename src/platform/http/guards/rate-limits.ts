import type { FastifyRequest } from 'fastify';
import { subjectOf } from '../../../kernel/access/principal.ts';
import { AppError } from '../../../kernel/errors.ts';
import { createRateLimiter } from './rate-limiter.ts';
import { clientNetworkOf } from '../client-address.ts';
import type { HttpApp } from '../http-app.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Requests that cost the server much: plans, exports, bulk retries. Ten a minute for each principal. */
    heavy?: true | ((request: FastifyRequest) => boolean);
  }
}

const heavyPerMinute = 10;
const loginPerMinute = 60;
/** Everything below it is public: who calls is known by the address only. */
const loginRoot = '/auth/';

/**
 * Limits what one caller may ask in a minute, with 429. Counted per process. Without authentication everybody is the
 * same principal, who is not limited. Added after the access guard: what it refuses does not count.
 */
export function limitRates(app: HttpApp): void {
  const heavy = createRateLimiter({ perMinute: heavyPerMinute });
  const logins = createRateLimiter({ perMinute: loginPerMinute });

  app.addHook('onRequest', (request, _reply, done) => {
    const { url = '', method, config } = request.routeOptions;
    if (url.startsWith(loginRoot)) {
      done(faultOf(logins.take(clientNetworkOf(request)), `${loginPerMinute} requests for logins`));
    } else if (isLimited(request) && isHeavy(config.heavy, request)) {
      const key = `${subjectOf(request.principal)} ${String(method)} ${url}`;
      done(faultOf(heavy.take(key), `${heavyPerMinute} such requests`));
    } else {
      done();
    }
  });
}

function isLimited({ principal }: FastifyRequest): boolean {
  return principal.type !== 'local';
}

function isHeavy(heavy: true | ((request: FastifyRequest) => boolean) | undefined, request: FastifyRequest) {
  return typeof heavy === 'function' ? heavy(request) : heavy === true;
}

function faultOf(retryAfterMs: number, most: string): AppError | undefined {
  if (retryAfterMs === 0) return undefined;
  const message = `at most ${most} per minute; try again in ${Math.ceil(retryAfterMs / 1000)} s`;
  return new AppError('SYS_RATE_LIMIT_EXCEEDED', 'rate_limited', message, { retryAfterMs });
}
