import { Type } from 'typebox';
import type { Metrics } from '../telemetry/metrics.ts';
import { addDocsPage } from './openapi/docs-page.ts';
import { errorResponse } from './errors/error-schema.ts';
import type { HttpApp } from './http-app.ts';
import { openApiDocument } from './openapi/openapi.ts';
import type { ReadinessReport } from './readiness.ts';

const HealthSchema = Type.Enum(['healthy', 'degraded', 'unhealthy']);

const ReadinessSchema = Type.Object({
  status: HealthSchema,
  checks: Type.Record(
    Type.String(),
    Type.Object({ status: HealthSchema, message: Type.Optional(Type.String()) }),
  ),
  timestamp: Type.String({ format: 'date-time' }),
});

/** Sent as text that is already JSON. */
const DescriptionSchema = Type.Unsafe<string>(Type.Object({ openapi: Type.String({ examples: ['3.1.0'] }) }));

const tags = ['process'];

export type ProcessRoutesOptions = Readonly<{
  /** Null if they have a port of their own. */
  metrics: Metrics | null;
  readiness: () => Promise<ReadinessReport>;
  /** The names and messages of checks tell about the inside of the server. */
  showsChecks: boolean;
  hasConsole: boolean;
}>;

/** Liveness, readiness, metrics and the API description. */
export function addProcessRoutes(app: HttpApp, options: ProcessRoutesOptions): void {
  const { metrics, readiness, showsChecks, hasConsole } = options;
  app.get(
    '/healthz',
    {
      config: { access: 'public' },
      schema: {
        operationId: 'getHealth',
        summary: 'Liveness',
        description: 'Answers while the process runs; checks nothing else.',
        tags,
        response: { 200: Type.Object({ status: Type.Literal('ok') }), default: errorResponse },
      },
    },
    () => ({ status: 'ok' as const }),
  );

  app.get(
    '/readyz',
    {
      config: { access: 'public' },
      schema: {
        operationId: 'getReadiness',
        summary: 'Readiness',
        description:
          'Checks the database, the broker and the workers. 503 only if the process is unhealthy; a degraded process is ready. With authentication only the status is shown.',
        tags,
        response: { 200: ReadinessSchema, 503: ReadinessSchema, default: errorResponse },
      },
    },
    async (_request, reply) => {
      const report = await readiness();
      return reply
        .code(report.status === 'unhealthy' ? 503 : 200)
        .send(showsChecks ? report : { ...report, checks: {} });
    },
  );

  if (metrics !== null) addMetricsRoute(app, metrics);
  addDescriptionRoute(app);
  addDocsPage(app);
  if (!hasConsole)
    app.get('/', { config: { access: 'public' }, schema: { hide: true } }, (_request, reply) =>
      reply.redirect('/docs/'),
    );
}

function addMetricsRoute(app: HttpApp, metrics: Metrics): void {
  app.get(
    '/metrics',
    {
      config: { access: { permission: 'system:metrics:view' } },
      schema: {
        operationId: 'getMetrics',
        summary: 'Metrics in the Prometheus text format',
        description: 'Metrics of this process, and global ones if it holds their lease.',
        errors: [401, 403, 503],
        tags,
        response: {
          200: {
            description: 'One line per value.',
            content: {
              'text/plain': { schema: Type.String({ examples: ['process_cpu_seconds_total 1.5'] }) },
            },
          },
        },
      },
    },
    async (_, reply) => {
      const text = await metrics.render();
      return reply.type(metrics.contentType).send(text);
    },
  );
}

function addDescriptionRoute(app: HttpApp): void {
  let description: string | undefined;
  app.get(
    '/openapi.json',
    {
      config: { access: 'authenticated' },
      schema: {
        operationId: 'getOpenApi',
        summary: 'This OpenAPI document',
        description: 'Describes the routes of this process: without the role `api` only these.',
        errors: [401, 503],
        tags,
        response: { 200: DescriptionSchema },
      },
    },
    async (_request, reply) => {
      description ??= JSON.stringify(openApiDocument(app));
      return reply.type('application/json').send(description);
    },
  );
}
