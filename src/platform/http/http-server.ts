import type { Tracer } from '@opentelemetry/api';
import { trace } from '@opentelemetry/api';
import type { Clock } from '../../kernel/clock.ts';
import { systemClock } from '../../kernel/clock.ts';
import type { Service } from '../../kernel/service.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { createApp, defaultLimits } from './create-app.ts';
import type { HttpLimits } from './create-app.ts';
import { errorResponse } from './error-schema.ts';
import type { HttpApp } from './http-app.ts';
import { addressOf, listen } from './listen.ts';
import type { HttpAddress, ListenOptions } from './listen.ts';
import { openApiDocument } from './openapi.ts';
import type { OpenApiDocument } from './openapi.ts';
import { addProcessRoutes } from './process-routes.ts';
import { createReadiness } from './readiness.ts';
import type { HealthCheck } from './readiness.ts';

const CUT_EVERY_MS = 50;

export type HttpServerOptions = ListenOptions &
  Readonly<{
    version: string;
    logger: Logger;
    metrics: Metrics;
    checks?: readonly HealthCheck[];
    limits?: Partial<HttpLimits>;
    tracer?: Tracer;
    clock?: Clock;
    /** Whether an error only says that something this process needs is away: 503 instead of 500. */
    isOutage?: (error: unknown) => boolean;
    /** Whose `x-forwarded-*` headers to believe, as Fastify takes it. */
    trustProxy?: boolean | string;
  }>;

export type HttpServer = Service &
  Readonly<{
    app: HttpApp;
    /** Adds a slice's routes, before the start. What HTTP itself refuses there speaks in the slice's name. */
    addRoutes(slice: string, addTo: (app: HttpApp) => void): void;
    /** Undefined while it does not listen. */
    address(): HttpAddress | undefined;
    /** The OpenAPI document of all routes. */
    describe(): Promise<OpenApiDocument>;
    /** Aborted when the stop begins, for answers that would not end by themselves. */
    stopping: AbortSignal;
  }>;

export function createHttpServer(options: HttpServerOptions): HttpServer {
  const { metrics, logger, version, trustProxy = false, isOutage = () => false } = options;
  const { tracer = trace.getTracer('redrive', version), clock = systemClock } = options;
  const stop = new AbortController();
  const limits = { ...defaultLimits, ...options.limits };
  const app = createApp({
    limits,
    logger,
    metrics,
    tracer,
    version,
    trustProxy,
    isOutage,
    stopping: stop.signal,
  });
  const readiness = createReadiness({ checks: options.checks ?? [], clock });
  app.register(async (scope: HttpApp) => addProcessRoutes(scope, { metrics, readiness }));

  return {
    name: 'http',
    app,
    stopping: stop.signal,
    addRoutes(slice, addTo) {
      app.register(async (scope: HttpApp) => {
        ownRoutes(scope, slice);
        addTo(scope);
      });
    },
    address: () => addressOf(app),
    async describe() {
      await app.ready();
      return openApiDocument(app);
    },
    start: () => listen(app, options),
    async stop(deadline) {
      stop.abort();
      await closeWithin(app, deadline);
    },
  };
}

/** Marks every route of the scope with its slice, and describes the errors that each of them may answer. */
function ownRoutes(scope: HttpApp, slice: string): void {
  scope.addHook('onRoute', (route) => {
    route.config = { ...route.config, slice };
    const { response, tags = [slice], ...schema } = route.schema ?? {};
    route.schema = { ...schema, tags, response: { ...(response as object), default: errorResponse } };
  });
}

/** Requests under way may finish until the deadline; then their connections are cut, for as long as there are any. */
async function closeWithin(app: HttpApp, deadline: AbortSignal): Promise<void> {
  let cutting: NodeJS.Timeout | undefined;
  const cut = () => {
    app.server.closeAllConnections();
    cutting = setInterval(() => app.server.closeAllConnections(), CUT_EVERY_MS);
  };
  if (deadline.aborted) cut();
  else deadline.addEventListener('abort', cut, { once: true });
  try {
    await app.close();
  } finally {
    deadline.removeEventListener('abort', cut);
    clearInterval(cutting);
  }
}
