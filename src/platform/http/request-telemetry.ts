import type { Span, Tracer } from '@opentelemetry/api';
import { context, isSpanContextValid, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { FastifyReply, FastifyRequest } from 'fastify';
import type { Metrics } from '../telemetry/metrics.ts';
import { clientAddressOf } from './client-address.ts';
import { contextOf, readTraceContext } from '../telemetry/trace-context.ts';

const knownMethods: ReadonlySet<string> = new Set([
  'GET',
  'HEAD',
  'POST',
  'PUT',
  'PATCH',
  'DELETE',
  'OPTIONS',
]);
/** The client disconnected before the answer; the status of nginx. */
const CLIENT_CLOSED = 499;
const MAX_LOGGED_PATH_LENGTH = 200;

export type RequestTelemetry = Readonly<{
  /** Calls `next` in the request's span. When the response closes, counts, times and logs it once. */
  observe(request: FastifyRequest, reply: FastifyReply, next: () => void): void;
}>;

type Served = Readonly<{
  method: string;
  route: string;
  address: string;
  status: number;
  seconds: number;
  isAborted: boolean;
}>;

/** One span, one count and one log line per request. Labels have the route pattern, never client input. */
export function createRequestTelemetry(metrics: Metrics, tracer: Tracer): RequestTelemetry {
  return {
    observe(request, reply, next) {
      const startedMs = performance.now();
      const method = knownMethods.has(request.method) ? request.method : 'OTHER';
      const route = request.routeOptions.url ?? 'unmatched';
      // Unknown once the connection is closed.
      const address = clientAddressOf(request);
      const parent = contextOf(readTraceContext(request.headers));
      const attributes = { 'http.request.method': method, 'http.route': route };
      const span = tracer.startSpan(`${method} ${route}`, { kind: SpanKind.SERVER, attributes }, parent);

      // `close` is emitted once, after the answer or after the client disconnected.
      reply.raw.once('close', () => {
        const served = {
          method,
          route,
          address,
          status: reply.raw.headersSent ? reply.raw.statusCode : CLIENT_CLOSED,
          seconds: (performance.now() - startedMs) / 1000,
          isAborted: !reply.raw.writableEnded,
        };
        count(metrics, served);
        finish(span, served);
        log(request, served);
      });

      context.with(trace.setSpan(parent, span), () => {
        bindTraceId(request, reply, span);
        next();
      });
    },
  };
}

function count(metrics: Metrics, { method, route, status, seconds }: Served): void {
  const labels = { method, route, status: String(status) };
  metrics.httpRequests.inc(labels);
  metrics.httpRequestDuration.observe(labels, seconds);
}

function finish(span: Span, { status }: Served): void {
  span.setAttribute('http.response.status_code', status);
  if (status >= 500) span.setStatus({ code: SpanStatusCode.ERROR });
  span.end();
}

/** Without an SDK the logger does not see the active span, so the trace id is bound to the request's logger. */
function bindTraceId(request: FastifyRequest, reply: FastifyReply, span: Span): void {
  const spanContext = span.spanContext();
  if (trace.getActiveSpan() === span || !isSpanContextValid(spanContext)) return;
  request.log = reply.log = request.log.child({ trace_id: spanContext.traceId });
}

/** Successful probes and scrapes are logged at level debug. */
function log(request: FastifyRequest, { method, route, address, status, seconds, isAborted }: Served): void {
  const isRoutine = request.routeOptions.config?.slice === undefined && status < 400;
  const line = {
    method,
    route,
    path: request.raw.url?.split('?', 1)[0]?.slice(0, MAX_LOGGED_PATH_LENGTH),
    address,
    status,
    duration_ms: Math.round(seconds * 1e6) / 1e3,
    ...(isAborted ? { aborted: true } : {}),
  };
  request.log[isRoutine ? 'debug' : 'info'](line, 'served request');
}
