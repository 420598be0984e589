import { connect } from 'node:net';
import { Type } from 'typebox';
import { AppError } from '../../src/kernel/errors.ts';
import { createLogger } from '../../src/platform/telemetry/logger.ts';
import { createMetrics } from '../../src/platform/telemetry/metrics.ts';
import type { Metrics } from '../../src/platform/telemetry/metrics.ts';
import { actorOf } from '../../src/platform/http/actor.ts';
import { createHttpServer } from '../../src/platform/http/http-server.ts';
import type { HttpServer, HttpServerOptions } from '../../src/platform/http/http-server.ts';
import type { HttpApp } from '../../src/platform/http/http-app.ts';
import { pageParameters } from '../../src/platform/http/page-schema.ts';
import { rawJson } from '../../src/platform/http/raw-json.ts';
import type { RawJson } from '../../src/platform/http/raw-json.ts';

/** A server with one small slice, for the tests of the rules that hold for all of them. */
export type TestServer = Readonly<{
  server: HttpServer;
  metrics: Metrics;
  /** What was logged so far. */
  logged(): readonly Readonly<Record<string, unknown>>[];
}>;

export function createTestServer(options: Partial<HttpServerOptions> = {}): TestServer {
  const lines: string[] = [];
  const metrics = createMetrics();
  const logger = createLogger({
    service: 'redrive',
    version: '0.1.0',
    environment: 'test',
    level: 'debug',
    stream: { write: (line) => lines.push(line) },
  });
  const server = createHttpServer({
    host: '127.0.0.1',
    port: 0,
    onPortTaken: 'fail',
    origin: { acceptsHost: () => true, mode: 'local', cookiePrefix: null, publicOrigin: null },
    version: '0.1.0',
    logger,
    metrics,
    ...options,
  });
  server.addRoutes('things', addThings);
  return {
    server,
    metrics,
    logged: () => lines.map((line) => JSON.parse(line) as Record<string, unknown>),
  };
}

const ThingSchema = Type.Object({
  id: Type.String(),
  payload: Type.Unsafe<RawJson>({ description: 'Any JSON.' }),
  count: Type.Unsafe<bigint>({ type: 'integer' }),
  note: Type.Optional(Type.String()),
});

const NewThingSchema = Type.Object(
  {
    name: Type.String({ minLength: 1, maxLength: 20 }),
    kind: Type.Optional(Type.Union([Type.Literal('small'), Type.Literal('large')])),
    value: Type.Optional(Type.Unknown()),
  },
  { additionalProperties: false },
);

const IdParams = Type.Object({ id: Type.String({ maxLength: 249 }) });

function addThings(app: HttpApp): void {
  const listQuery = Type.Object(
    {
      ...pageParameters,
      status: Type.Optional(Type.Enum(['PENDING', 'DEAD'])),
      topic: Type.Optional(Type.Array(Type.String(), { maxItems: 3 })),
      archived: Type.Optional(Type.Boolean()),
    },
    { additionalProperties: false },
  );
  app.get(
    '/api/v1/things',
    { config: { access: 'authenticated' }, schema: { querystring: listQuery } },
    (request) => ({ query: request.query }),
  );
  app.get(
    '/api/v1/things/:id',
    { config: { access: 'authenticated' }, schema: { params: IdParams, response: { 200: ThingSchema } } },
    (request) => ({
      id: request.params.id,
      payload: rawJson('{"big": 12345678901234567890, "huge": 1e400, "b":1, "a":1.10}'),
      count: 9007199254740993n,
      beyond: 'the schema',
    }),
  );
  app.post(
    '/api/v1/things',
    { config: { access: 'authenticated' }, schema: { body: NewThingSchema } },
    (request) => ({
      name: request.body.name,
      actor: actorOf(request),
    }),
  );
  app.post(
    '/api/v1/things/:id/retry',
    { config: { access: 'authenticated' }, schema: { params: IdParams } },
    () => ({ status: 'RESOLVED' }),
  );
  app.post(
    '/api/v1/things/:id/fail',
    { config: { access: 'authenticated' }, schema: { params: IdParams } },
    (request) => {
      throw failures[request.params.id]?.() ?? new Error('SELECT password FROM users');
    },
  );
}

const failures: Readonly<Record<string, () => unknown>> = {
  conflict: () => new AppError('SYS_THINGS_CONFLICT', 'conflict', 'thing is not retryable: status=DEAD'),
  locked: () =>
    new AppError('SYS_THINGS_LOCKED', 'conflict', 'somebody else is at this thing', { retryAfterMs: 1000 }),
  busy: () => new AppError('SYS_THINGS_BUSY', 'rate_limited', 'too many', { retryAfterMs: 1500 }),
  away: () =>
    new AppError('SYS_THINGS_BROKER_UNAVAILABLE', 'unavailable', 'broker away', { retryAfterMs: 1 }),
  internal: () => new AppError('SYS_THINGS_BROKEN', 'internal', 'password=hunter2'),
  text: () => 'a text is no error',
  nothing: () => undefined,
};

/** Sends bytes as they are, closes its side where told so, and returns all that comes until the server closes. */
export function talk(
  server: HttpServer,
  request: string | Buffer,
  { andClose = false }: { andClose?: boolean } = {},
): Promise<string> {
  const { port } = server.address() ?? { port: 0 };
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1');
    let received = '';
    socket.setEncoding('latin1');
    socket.on('data', (chunk: string) => {
      received += chunk;
    });
    socket.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'ECONNRESET' && error.code !== 'EPIPE') reject(error);
    });
    socket.on('close', () => resolve(received));
    socket.write(request);
    if (andClose) socket.end();
  });
}
