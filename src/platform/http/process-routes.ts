import { Type } from 'typebox';
import type { Metrics } from '../telemetry/metrics.ts';
import { addDocsPage } from './docs-page.ts';
import { errorResponse } from './error-schema.ts';
import type { HttpApp } from './http-app.ts';
import { openApiDocument } from './openapi.ts';
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

/** What the process says about itself: is it alive, may it get requests, how is it doing, what can it do. */
export function addProcessRoutes(app: HttpApp, options: ProcessRoutesOptions): void {
  const { metrics, readiness } = options;
  const tags = ['process'];

  app.get(
    '/healthz',
    {
      schema: {
        summary: 'Is the process alive',
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
        summary: 'May the process get requests; 503 only when unhealthy',
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
    { schema: { summary: 'Figures in the Prometheus text format', tags } },
    async (_, reply) => {
      const text = await metrics.render();
      return reply.type(metrics.contentType).send(text);
    },
  );

  let description: string | undefined;
  app.get('/openapi.json', { schema: { summary: 'This description', tags } }, (_request, reply) => {
    description ??= JSON.stringify(openApiDocument(app));
    return reply.type('application/json').send(description);
  });

  addDocsPage(app);
  // Whoever opens the bare address in a browser finds something to read.
  app.get('/', { schema: { hide: true } }, (_request, reply) => reply.redirect('/docs/'));
}
