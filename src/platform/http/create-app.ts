import type { Tracer } from '@opentelemetry/api';
import { fastify, LogController } from 'fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Logger } from '../telemetry/logger.ts';
import type { Metrics } from '../telemetry/metrics.ts';
import { createMethodTable } from './allowed-methods.ts';
import { answerClientErrors } from './client-errors.ts';
import { watchConnections } from './connections.ts';
import { errorAnswer, HTTP_SLICE } from './error-answer.ts';
import type { HttpApp, TypeBoxProvider } from './http-app.ts';
import { HttpFault } from './http-fault.ts';
import { guardInput } from './input-guard.ts';
import { acceptJsonBodies, normaliseContentType } from './json-body.ts';
import { describeRoutes } from './openapi.ts';
import { stringifyWithRaw } from './raw-json.ts';
import { requestIdOf } from './request-id.ts';
import { createRequestTelemetry } from './request-telemetry.ts';
import { validateInput } from './validate-input.ts';

/** What a client may cost before it is refused; each has a default that suits a server behind a proxy. */
export type HttpLimits = Readonly<{
  bodyBytes: number;
  headerBytes: number;
  /** A request's head, and a whole request, must have arrived in this time. */
  headersTimeoutMs: number;
  requestTimeoutMs: number;
  /** How often connections are checked against these times. */
  checkEveryMs: number;
  keepAliveMs: number;
}>;

export const defaultLimits: HttpLimits = {
  bodyBytes: 1024 * 1024,
  headerBytes: 16 * 1024,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 60_000,
  checkEveryMs: 2000,
  keepAliveMs: 72_000,
};

export type AppOptions = Readonly<{
  limits: HttpLimits;
  logger: Logger;
  metrics: Metrics;
  tracer: Tracer;
  version: string;
  trustProxy: boolean | string;
  /** Whether an error only says that something this process needs is away: 503 instead of 500. */
  isOutage: (error: unknown) => boolean;
  /** From here on every answer asks its client to leave. */
  stopping: AbortSignal;
}>;

/** Every request gets one line of ours when it is over; Fastify's own lines remain for what it alone can see. */
class FaultsOnly extends LogController {
  override incomingRequest(): void {}
  override requestCompleted(): void {}
}

/** Fastify with the rules that hold for every route, whoever adds it. */
export function createApp(options: AppOptions): HttpApp {
  const { limits, logger, metrics, tracer, isOutage } = options;
  const telemetry = createRequestTelemetry(metrics, tracer);
  const app: HttpApp = fastify({
    loggerInstance: logger,
    logController: new FaultsOnly({ requestIdLogLabel: 'request_id' }),
    genReqId: (request) => requestIdOf(request.headers),
    trustProxy: options.trustProxy,
    bodyLimit: limits.bodyBytes,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveMs,
    return503OnClosing: false,
    http: {
      maxHeaderSize: limits.headerBytes,
      headersTimeout: limits.headersTimeoutMs,
      connectionsCheckingInterval: limits.checkEveryMs,
      // Node would refuse such a request with an empty answer; the onRequest hook does it in our form.
      requireHostHeader: false,
    },
    // Longer than any head may be: the route's schema says how long a parameter is, and says it better.
    routerOptions: { maxParamLength: limits.headerBytes },
    // Fastify's own would answer in its form; ours listens on the server itself.
    clientErrorHandler: () => {},
    frameworkErrors: (error, request, reply) => {
      telemetry.observe(request, reply, () => sendError(error, { request, reply, isOutage }));
    },
  }).withTypeProvider<TypeBoxProvider>();

  answerClientErrors(app.server, watchConnections(app.server, options.stopping), (status) => {
    metrics.httpRequests.inc({ method: 'OTHER', route: 'unmatched', status: String(status) });
  });
  app.setValidatorCompiler(validateInput);
  app.setSerializerCompiler(() => stringifyWithRaw);
  app.setReplySerializer(stringifyWithRaw);
  app.setErrorHandler((error, request, reply) => sendError(error, { request, reply, isOutage }));
  acceptJsonBodies(app);
  addHooks(app, telemetry, options.stopping);
  refuseUnknown(app);
  describeRoutes(app, options.version);
  return app;
}

function addHooks(
  app: HttpApp,
  telemetry: ReturnType<typeof createRequestTelemetry>,
  stopping: AbortSignal,
): void {
  app.addHook('onRequest', (request, reply, done) => {
    reply.header('x-request-id', request.id).header('x-content-type-options', 'nosniff');
    normaliseContentType(request.raw);
    telemetry.observe(request, reply, () => done(protocolFaultOf(request)));
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

function protocolFaultOf({ raw, headers }: FastifyRequest): HttpFault | undefined {
  if (raw.httpVersion === '1.1' && headers.host === undefined) {
    return new HttpFault(400, 'the request has no host header');
  }
  // A page of another site can make a browser post to a server on loopback, where nobody is asked to log in.
  if (headers['sec-fetch-site'] === 'cross-site' && raw.method !== 'GET' && raw.method !== 'HEAD') {
    return new HttpFault(403, 'requests from pages of other sites are not accepted');
  }
  return undefined;
}

/** A path that nobody serves is not found; one that is served by other methods says by which. */
function refuseUnknown(app: HttpApp): void {
  const methods = createMethodTable();
  app.addHook('onRoute', ({ url, method }) =>
    methods.add(url, typeof method === 'string' ? [method] : method),
  );
  app.setNotFoundHandler((request) => {
    const allowed = methods.allowedFor(request.raw.url ?? '');
    if (allowed.length === 0) throw new HttpFault(404, 'no such path');
    const list = allowed.join(', ');
    throw new HttpFault(405, `the method must be one of: ${list}`, { headers: { allow: list } });
  });
}

type Failed = Readonly<{
  request: FastifyRequest;
  reply: FastifyReply;
  isOutage: (error: unknown) => boolean;
}>;

function sendError(error: unknown, { request, reply, isOutage }: Failed): void {
  const slice = request.routeOptions.config.slice ?? HTTP_SLICE;
  const { status, headers, body } = errorAnswer(isOutage(error) ? outage : error, slice, request.id);
  if (status >= 500) {
    request.log[status === 500 ? 'error' : 'warn']({ err: error, code: body.error.code }, 'request failed');
  }
  reply
    .code(status)
    .headers({ 'x-request-id': request.id, 'x-content-type-options': 'nosniff', ...headers })
    .type('application/json; charset=utf-8')
    .send(JSON.stringify(body));
}

const outage = new HttpFault(503, 'the database does not answer in time; try again', {
  headers: { 'retry-after': '1' },
});
