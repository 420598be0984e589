import { passes } from '../../kernel/access/scope.ts';
import { namesFor } from '../../platform/http/access/guard-access.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { root } from '../route-parts.ts';
import { listQueues, type ListQueuesDeps } from './list-queues.ts';
import { presentQueue } from './present-job.ts';
import { QueuesSchema } from './queue-schemas.ts';

export function addQueueRoutes(app: HttpApp, deps: ListQueuesDeps): void {
  app.get(
    `${root}/queues`,
    {
      config: { access: { permission: 'jobs:queues:view', scope: { by: 'queues', in: 'list' } } },
      schema: {
        operationId: 'listQueues',
        summary: 'List queues with settings, pauses and job counts',
        description:
          'Shows configured queues and queues that have jobs. Large counts are estimates and named in `estimated_counts`.',
        response: { 200: QueuesSchema },
      },
    },
    async (request, reply) => {
      const names = namesFor(request);
      const queues = (await listQueues(deps)).filter(({ name }) => passes(names, name));
      return reply.send({ queues: queues.map(presentQueue) });
    },
  );
}
