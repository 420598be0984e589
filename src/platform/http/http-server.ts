import type { Tracer } from '@opentelemetry/api';
import { trace } from '@opentelemetry/api';
import type { Clock } from '../../kernel/clock.ts';
import { systemClock } from '../../kernel/clock.ts';
import { localPrincipal } from '../../kernel/access/principal.ts';
import type { AppError } from '../../kernel/errors.ts';
import type { Service } from '../../kernel/service.ts';
import type { Logger } from '../telemetry/logger.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { createApp, defaultLimits } from './create-app.ts';
import type { HttpLimits } from './create-app.ts';
import { errorResponse } from './errors/error-schema.ts';
import type { Authenticate } from './access/guard-access.ts';
import type { Revocations } from './access/end-when-refused.ts';
import type { DeclaredRoute } from './access/route-access.ts';
import type { HttpApp } from './http-app.ts';
import { addressOf, listen } from './listen.ts';
import type { HttpAddress, ListenOptions } from './listen.ts';
import { openApiDocument } from './openapi/openapi.ts';
import type { ApiTag, OpenApiDocument } from './openapi/openapi.ts';
import { createMetricsServer } from './metrics-server.ts';
import { addProcessRoutes } from './process-routes.ts';
import type { OnDenied } from './errors/denied-request.ts';
import type { OriginRules } from './guards/origin-guard.ts';
import { createReadiness } from './readiness.ts';
import type { HealthCheck, ReadinessReport } from './readiness.ts';

const CUT_EVERY_MS = 50;

export type HttpServerOptions = ListenOptions &
  Readonly<{
    version: string;
    /** What the API description says about each slice. */
    tags?: readonly ApiTag[];
    logger: Logger;
    metrics: Metrics;
    /** Where `/metrics` is served without authentication; default: at the server's own port, with it. */
    metricsAt?: Readonly<{ host: string; port: number }> | null;
    /** Which pages in browsers are ours. */
    origin: OriginRules;
    /** Default: everybody is the local principal, who may do everything. */
    authenticate?: Authenticate;
    /** Called for each request that was refused because of who sent it. */
    onDenied?: OnDenied;
    /** Covers what is protected in a text: errors and readiness quote what they failed on. */
    cover?: (text: string) => string;
    /** Of sessions and keys; streams are then checked again. */
    revocations?: Revocations;
    checks?: readonly HealthCheck[];
    /** Whether `/readyz` shows each check; default: yes. */
    showsChecks?: boolean;
    /** Whether a slice serves `/`; otherwise it leads to the API page. */
    hasConsole?: boolean;
    /** While it returns an error, the routes of all slices answer with it. */
    closedBy?: () => AppError | null;
    limits?: Partial<HttpLimits>;
    tracer?: Tracer;
    clock?: Clock;
    /** The error is an outage of a dependency: 503 instead of 500. */
    isOutage?: (error: unknown) => boolean;
    /** The database role lacks a privilege: 503 as well. */
    isMissingRight?: (error: unknown) => boolean;
    /** Addresses and ranges of proxies whose `x-forwarded-*` headers count. */
    trustedProxies?: readonly string[];
    /** The public URL is `https:`. */
    isPublicByTls?: boolean;
  }>;

export type HttpServer = Service &
  Readonly<{
    app: HttpApp;
    /** Adds a slice's routes before the start. HTTP errors of these routes have the slice's error prefix. */
    addRoutes(slice: string, addTo: (app: HttpApp) => void): void;
    /** Undefined while the server does not listen. */
    address(): HttpAddress | undefined;
    /** Undefined if the metrics have no port of their own. */
    metricsAddress(): HttpAddress | undefined;
    /** All routes and who may call them. */
    routes(): Promise<readonly DeclaredRoute[]>;
    /** The OpenAPI document of all routes. */
    describe(): Promise<OpenApiDocument>;
    /** What `/readyz` tells, with all checks. */
    readiness: () => Promise<ReadinessReport>;
    /** Aborted when the stop begins, for answers that would never end. */
    stopping: AbortSignal;
  }>;

export function createHttpServer(options: HttpServerOptions): HttpServer {
  const { metrics, logger, version, origin, trustedProxies = [], isOutage = () => false } = options;
  const { isMissingRight = () => false, closedBy = () => null, tags = [], showsChecks = true } = options;
  const { metricsAt = null, hasConsole = false, isPublicByTls = false, cover = (text) => text } = options;
  const { tracer = trace.getTracer('redrive', version), clock = systemClock } = options;
  const stop = new AbortController();
  const limits = { ...defaultLimits, ...options.limits };
  const { app, declared } = createApp({
    limits,
    logger,
    metrics,
    tracer,
    version,
    tags,
    trustedProxies,
    isPublicByTls,
    isOutage,
    isMissingRight,
    origin,
    authenticate: options.authenticate ?? (() => localPrincipal),
    onDenied: options.onDenied ?? (() => {}),
    cover,
    revocations: options.revocations ?? (() => () => {}),
    stopping: stop.signal,
  });
  const readiness = createReadiness({ checks: options.checks ?? [], clock, cover });
  app.register(async (scope: HttpApp) =>
    addProcessRoutes(scope, {
      metrics: metricsAt === null ? metrics : null,
      readiness,
      showsChecks,
      hasConsole,
    }),
  );
  const metricsServer = metricsAt === null ? null : createMetricsServer({ ...metricsAt, metrics });

  return {
    name: 'http',
    app,
    stopping: stop.signal,
    readiness,
    addRoutes(slice, addTo) {
      app.register(async (scope: HttpApp) => {
        ownRoutes(scope, slice);
        scope.addHook('onRequest', (_request, _reply, done) => done(closedBy() ?? undefined));
        addTo(scope);
      });
    },
    address: () => addressOf(app),
    metricsAddress: () => metricsServer?.address(),
    async routes() {
      await app.ready();
      return declared;
    },
    async describe() {
      await app.ready();
      return openApiDocument(app);
    },
    async start() {
      await metricsServer?.start();
      await listen(app, options);
    },
    async stop(deadline) {
      stop.abort();
      await closeWithin(app, deadline);
      await metricsServer?.stop();
    },
  };
}

/** Sets the slice of every route in the scope, and adds the error response to its description. */
function ownRoutes(scope: HttpApp, slice: string): void {
  scope.addHook('onRoute', (route) => {
    route.config = { ...route.config, slice };
    const { response, tags = [slice], ...schema } = route.schema ?? {};
    route.schema = { ...schema, tags, response: { ...(response as object), default: errorResponse } };
  });
}

/** Requests in progress may finish until the deadline; then connections are closed until none is left. */
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
