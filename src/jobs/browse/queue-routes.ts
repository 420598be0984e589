import { formatTimestamp } from '../../kernel/timestamp.ts';
import { passes } from '../../kernel/access/scope.ts';
import { namesFor } from '../../platform/http/access/guard-access.ts';
import type { PayloadMasks } from '../../platform/http/access/payload-masks.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { readClock } from '../../platform/postgres/read-clock.ts';
import { root } from '../route-parts.ts';
import { listQueues, type ListQueuesDeps } from './list-queues.ts';
import { presentQueue } from './present-job.ts';
import { QueuesSchema } from './queue-schemas.ts';
import { readThroughput, throughputMinutes } from './read-throughput.ts';

/** Of a queue that has completed nothing. */
const idle: readonly number[] = Array.from({ length: throughputMinutes }, () => 0);

export function addQueueRoutes(
  app: HttpApp,
  deps: ListQueuesDeps & Readonly<{ masking: PayloadMasks }>,
): void {
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
      const asOf = await readClock(deps.db);
      const queues = (await listQueues(deps)).filter(({ name }) => passes(names, name));
      const { byQueue, isPartial } = await readThroughput(deps.db);
      return reply.send({
        queues: queues.map((queue) => ({
          ...presentQueue(queue, deps.masking.of(request, queue.name)),
          completed_by_minute: queue.settings.keepCompleted ? (byQueue.get(queue.name) ?? idle) : null,
        })),
        ...(isPartial ? { throughput_is_partial: true } : {}),
        as_of: formatTimestamp(asOf),
      });
    },
  );
}
