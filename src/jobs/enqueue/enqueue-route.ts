import { Type, type TSchema } from 'typebox';
import { creatorOf, isAllowed } from '../../kernel/access/principal.ts';
import { scopeOfBody } from '../../platform/http/access/item-scope.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { closed, Instant } from '../../platform/http/schema-parts.ts';
import { traceparentOf } from '../../platform/http/traceparent.ts';
import type { Database } from '../../platform/postgres/database.ts';
import { statuses } from '../domain/job.ts';
import type { JobMetrics } from '../job-metrics.ts';
import { queueNameChecks, readInstant, readQueueName, root } from '../route-parts.ts';
import { dedupeKeyTaken, enqueueJob, isOfAnother } from './enqueue-job.ts';

const NewJobBody = Type.Object(
  {
    queue: Type.String({
      examples: ['mail'],
      minLength: 1,
      maxLength: 100,
      description: 'Lower-case letters, digits, dots, hyphens and underscores; a letter comes first.',
      ...queueNameChecks,
    }),
    payload: Type.Unknown({
      examples: [{ to: 'alice@example.com' }],
      description: 'Any JSON; passed to the worker.',
    }),
    dedupe_key: Type.Optional(
      Type.String({
        examples: ['welcome:alice'],
        minLength: 1,
        maxLength: 500,
        description: 'At most one unfinished job of the queue has this key; a second one is a duplicate.',
      }),
    ),
    priority: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 100,
        default: 0,
        description: 'Each step moves the job forward by one minute.',
      }),
    ),
    run_at: Type.Optional({
      ...Instant,
      description: 'Do not run before this time; ISO 8601 with its zone. Default: now.',
    }),
    max_retries: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1000,
        description: "Failures before dead-lettering; default: the queue's setting.",
      }),
    ),
  },
  closed,
);

const EnqueuedSchema: TSchema = Type.Object(
  {
    job_id: Type.String({ format: 'uuid' }),
    status: Type.Enum([...statuses]),
    duplicate: Type.Boolean({
      description: 'An unfinished job already has this dedupe key; this is that job.',
    }),
  },
  { title: 'EnqueuedJob' },
);

export type EnqueueRouteDeps = Readonly<{ db: Database; counts: Pick<JobMetrics, 'enqueued'> }>;

export function addEnqueueRoute(app: HttpApp, { db, counts }: EnqueueRouteDeps): void {
  app.post(
    root,
    {
      config: {
        access: { permission: 'jobs:jobs:enqueue', scope: scopeOfBody('queues', 'queue') },
        exactJson: true,
      },
      schema: {
        operationId: 'enqueueJob',
        summary: 'Add a job to a queue',
        description:
          'If an unfinished job of the queue has the dedupe key, nothing is added, and the answer is that job. So a request with a dedupe key can be repeated. 409 if another caller added that job and this one may not see it.',
        errors: [409],
        body: NewJobBody,
        response: { 200: EnqueuedSchema, 202: EnqueuedSchema },
      },
    },
    async (request, reply) => {
      const { body } = request;
      const queue = readQueueName(body.queue);
      const createdBy = creatorOf(request.principal);
      const { jobId, status, isDuplicate } = await enqueueJob(db, {
        queue,
        // `exactJson` has refused numbers that a double cannot hold, so this loses no digit.
        payload: JSON.stringify(body.payload),
        dedupeKey: body.dedupe_key ?? null,
        priority: body.priority ?? 0,
        runAt: readInstant('run_at', body.run_at) ?? null,
        maxRetries: body.max_retries ?? null,
        trace: traceparentOf(request),
        createdBy,
      });
      const maySee = isAllowed(request.principal, 'jobs:jobs:view', { queues: [queue] });
      if (isDuplicate && !maySee && (await isOfAnother(db, jobId, createdBy))) throw dedupeKeyTaken();
      if (!isDuplicate) counts.enqueued(queue);
      return reply.code(isDuplicate ? 200 : 202).send({ job_id: jobId, status, duplicate: isDuplicate });
    },
  );
}
