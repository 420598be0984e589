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

export type ProcessRoutesOptions = Readonly<{
  metrics: Metrics;
  readiness: () => Promise<ReadinessReport>;
}>;

/** Liveness, readiness, metrics and the API description. */
export function addProcessRoutes(app: HttpApp, options: ProcessRoutesOptions): void {
  const { metrics, readiness } = options;
  const tags = ['process'];

  app.get(
    '/healthz',
    {
      schema: {
        summary: 'Liveness',
        tags,
        response: { 200: Type.Object({ status: Type.Literal('ok') }), default: errorResponse },
      },
    },
    () => ({ status: 'ok' as const }),
  );

  app.get(
    '/readyz',
    {
      schema: {
        summary: 'Readiness; 503 only if unhealthy',
        tags,
        response: { 200: ReadinessSchema, 503: ReadinessSchema, default: errorResponse },
      },
    },
    async (_request, reply) => {
      const report = await readiness();
      return reply.code(report.status === 'unhealthy' ? 503 : 200).send(report);
    },
  );

  app.get(
    '/metrics',
    { schema: { summary: 'Metrics in the Prometheus text format', tags } },
    async (_, reply) => {
      const text = await metrics.render();
      return reply.type(metrics.contentType).send(text);
    },
  );

  let description: string | undefined;
  app.get('/openapi.json', { schema: { summary: 'This OpenAPI document', tags } }, (_request, reply) => {
    description ??= JSON.stringify(openApiDocument(app));
    return reply.type('application/json').send(description);
  });

  addDocsPage(app);
  app.get('/', { schema: { hide: true } }, (_request, reply) => reply.redirect('/docs/'));
}
