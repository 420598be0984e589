import cookie from '@fastify/cookie';
import type { Tracer } from '@opentelemetry/api';
import { fastify, LogController } from 'fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from '../telemetry/logger.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { createMethodTable } from './guards/allowed-methods.ts';
import { answerClientErrors } from './errors/client-errors.ts';
import { watchConnections } from './guards/connections.ts';
import { denialCodeOf, type OnDenied } from './errors/denied-request.ts';
import { errorAnswer, HTTP_SLICE } from './errors/error-answer.ts';
import type { HttpApp, TypeBoxProvider } from './http-app.ts';
import { HttpFault } from './errors/http-fault.ts';
import { boundHandlers } from './guards/handler-timeout.ts';
import { guardInput } from './guards/input-guard.ts';
import { acceptJsonBodies, normaliseContentType } from './input/json-body.ts';
import { describeRoutes, type ApiTag } from './openapi/openapi.ts';
import { stringifyWithRaw } from './raw-json.ts';
import { serveOneAtATime } from './guards/one-at-a-time.ts';
import { requestFaultOf } from './guards/origin-guard.ts';
import type { OriginRules } from './guards/origin-guard.ts';
import { guardAccess, type Authenticate } from './access/guard-access.ts';
import type { Revocations } from './access/end-when-refused.ts';
import type { DeclaredRoute } from './access/route-access.ts';
import { requestIdOf } from './request-id.ts';
import { createRequestTelemetry } from './request-telemetry.ts';
import { boundMemory } from './guards/memory-budget.ts';
import { limitRates } from './guards/rate-limits.ts';
import { addSecurityHeaders, securityHeaders } from './guards/security-headers.ts';
import { shedLoad } from './guards/shed-load.ts';
import { validateInput } from './input/validate-input.ts';

/** Limits per client and request. The defaults suit a server behind a proxy. */
export type HttpLimits = Readonly<{
  bodyBytes: number;
  headerBytes: number;
  /** Time for the head, and for the whole request, to arrive. */
  headersTimeoutMs: number;
  requestTimeoutMs: number;
  /** How often connections are checked against these times. */
  checkEveryMs: number;
  keepAliveMs: number;
  /** How long a handler may take to begin its answer. */
  handlerTimeoutMs: number;
  /** How long a connection may carry nothing while a request is in progress; longer than a handler may take. */
  silentConnectionMs: number;
  /** Mean delay of the event loop, in three samples in a row, above which requests get 503. */
  maxDelayMs: number;
  delaySampleMs: number;
  /** Memory for the bodies and answers of all requests in progress; at least two bodies. */
  inProgressBytes: number;
  /** How long a request waits for that memory before it gets 503. */
  memoryWaitMs: number;
  /** A client must read its answer in this time plus its size at this rate. */
  readAnswerMs: number;
  readBytesPerMs: number;
}>;

export const defaultLimits: HttpLimits = {
  bodyBytes: 1024 * 1024,
  headerBytes: 16 * 1024,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 30_000,
  checkEveryMs: 2000,
  keepAliveMs: 72_000,
  handlerTimeoutMs: 60_000,
  silentConnectionMs: 70_000,
  maxDelayMs: 500,
  delaySampleMs: 1000,
  inProgressBytes: 32 * 1024 * 1024,
  memoryWaitMs: 1000,
  readAnswerMs: 15_000,
  readBytesPerMs: 64,
};

export type AppOptions = Readonly<{
  limits: HttpLimits;
  logger: Logger;
  metrics: Metrics;
  tracer: Tracer;
  version: string;
  /** The slices, for the API description. */
  tags: readonly ApiTag[];
  trustedProxies: readonly string[];
  /** People reach the server by TLS: a proxy ends it. */
  isPublicByTls: boolean;
  /** The error is an outage of a dependency: 503 instead of 500. */
  isOutage: (error: unknown) => boolean;
  isMissingRight: (error: unknown) => boolean;
  origin: OriginRules;
  authenticate: Authenticate;
  onDenied: OnDenied;
  /** Covers what is protected in a text. */
  cover: (text: string) => string;
  /** Of sessions and keys. */
  revocations: Revocations;
  /** Aborted when the stop begins: answers then ask the client to close the connection. */
  stopping: AbortSignal;
}>;

/** Our own telemetry logs one line per request; Fastify's request lines are dropped. */
class FaultsOnly extends LogController {
  override incomingRequest(): void {}
  override requestCompleted(): void {}
}

/** Fastify with the rules of every route; the list of routes grows as they are added. */
export function createApp(
  options: AppOptions,
): Readonly<{ app: HttpApp; declared: readonly DeclaredRoute[] }> {
  const { limits, logger, metrics, tracer } = options;
  const telemetry = createRequestTelemetry(metrics, tracer);
  const app: HttpApp = fastify({
    loggerInstance: logger,
    logController: new FaultsOnly({ requestIdLogLabel: 'request_id' }),
    genReqId: (request) => requestIdOf(request.headers),
    trustProxy: options.trustedProxies.length > 0 && [...options.trustedProxies],
    bodyLimit: limits.bodyBytes,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveMs,
    connectionTimeout: limits.silentConnectionMs,
    return503OnClosing: false,
    http: {
      maxHeaderSize: limits.headerBytes,
      headersTimeout: limits.headersTimeoutMs,
      connectionsCheckingInterval: limits.checkEveryMs,
      // Node would reject such a request with an empty answer; the onRequest hook sends our error body.
      requireHostHeader: false,
    },
    // No limit here: the route's schema limits a parameter, with a better error.
    routerOptions: { maxParamLength: limits.headerBytes },
    // Ours listens on the server itself.
    clientErrorHandler: () => {},
    frameworkErrors: (error, request, reply) => {
      telemetry.observe(request, reply, () => sendError(error, { ...options, request, reply }));
    },
  }).withTypeProvider<TypeBoxProvider>();

  serveOneAtATime(app.server);
  answerClientErrors(app.server, watchConnections(app.server, options.stopping), (status) => {
    metrics.httpRequests.inc({ method: 'OTHER', route: 'unmatched', status: String(status) });
  });
  app.setValidatorCompiler(validateInput);
  app.setSerializerCompiler(() => stringifyWithRaw);
  app.setReplySerializer(stringifyWithRaw);
  app.setErrorHandler((error, request, reply) => {
    const denial = denialCodeOf(error);
    if (denial !== null) options.onDenied(request, denial);
    return sendError(error, { ...options, request, reply });
  });
  // Cookies are read where they count, by `parseCookie`.
  app.register(cookie, { hook: false });
  acceptJsonBodies(app, limits.bodyBytes);
  addSecurityHeaders(app, options.isPublicByTls);
  addHooks(app, telemetry, options);
  shedLoad(app, { maxDelayMs: limits.maxDelayMs, sampleMs: limits.delaySampleMs });
  boundHandlers(app, limits.handlerTimeoutMs);
  const declared = guardAccess(app, options.authenticate, options.revocations);
  limitRates(app);
  boundMemory(app, {
    bytes: Math.max(limits.inProgressBytes, 2 * limits.bodyBytes),
    waitMs: limits.memoryWaitMs,
    readMs: limits.readAnswerMs,
    readBytesPerMs: limits.readBytesPerMs,
  });
  describeRoutes(app, options.version, options.tags);
  return { app, declared };
}

function addHooks(
  app: HttpApp,
  telemetry: ReturnType<typeof createRequestTelemetry>,
  { origin, stopping }: AppOptions,
): void {
  const routeFaultOf = watchRoutes(app);
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id);
    normaliseContentType(request.raw);
    telemetry.observe(request, reply, () => done(requestFaultOf(request, origin) ?? routeFaultOf(request)));
  });
  app.addHook('preValidation', (request, _reply, done) => {
    if (request.routeOptions.config.slice !== undefined) guardInput(request);
    done();
  });
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (stopping.aborted) reply.header('connection', 'close');
    done(null, payload);
  });
}

/**
 * 404 for an unknown path, 405 with the allowed methods for a wrong method. Decided before the body is read, so that
 * the body cannot change the answer.
 */
function watchRoutes(app: HttpApp): (request: FastifyRequest) => HttpFault | undefined {
  const methods = createMethodTable();
  app.addHook('onRoute', ({ url, method }) =>
    methods.add(url, typeof method === 'string' ? [method] : method),
  );
  // With a handler the hooks run for unknown paths too; the hook answers them.
  app.setNotFoundHandler(() => {
    throw new HttpFault(404, 'no such path');
  });
  return ({ method, raw: { url = '' }, is404 }) => {
    if (!is404 && !methods.isMistakenForParameter(url, method)) return undefined;
    const allowed = methods.allowedFor(url);
    if (allowed.length === 0) return new HttpFault(404, 'no such path');
    const list = allowed.join(', ');
    return new HttpFault(405, `the method must be one of: ${list}`, { headers: { allow: list } });
  };
}

type Failed = Readonly<{
  request: FastifyRequest;
  reply: FastifyReply;
  isOutage: (error: unknown) => boolean;
  isMissingRight: (error: unknown) => boolean;
  cover: (text: string) => string;
}>;

function sendError(error: unknown, { request, reply, isOutage, isMissingRight, cover }: Failed): void {
  const slice = request.routeOptions.config.slice ?? HTTP_SLICE;
  // A client that disconnects while sending its body is not an outage.
  const isOurs = !request.raw.errored && isOutage(error);
  const { status, headers, body } = errorAnswer(
    isOurs ? outage : isMissingRight(error) ? missingRight : error,
    slice,
    request.id,
    cover,
  );
  if (status >= 500) {
    request.log[status === 500 || isMissingRight(error) ? 'error' : 'warn'](
      { err: error, code: body.error.code },
      'request failed',
    );
  }
  reply
    .code(status)
    .headers({ ...securityHeaders, 'x-request-id': request.id, ...headers })
    .type('application/json; charset=utf-8')
    .send(JSON.stringify(body));
}

/** The log has the details: callers must not see table names. */
const missingRight = new HttpFault(
  503,
  "the server's database role lacks a privilege; run `redrive doctor` on the server, or see its log",
);

const outage = new HttpFault(503, 'the database is unavailable or busy; try again', {
  headers: { 'retry-after': '1' },
});
