import { actorOf } from '../../platform/http/actor.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { describeQueues, type DescribeDeps } from '../usecase/describe-queues.ts';
import { pauseQueue, resumeQueue, type PauseDeps } from '../usecase/pause-queue.ts';
import { presentPause, presentQueue } from './present-job.ts';
import * as schemas from './queue-schemas.ts';
import { readQueueName } from './read-fields.ts';
import { root } from './root.ts';
import { QueueParams } from './schemas.ts';

export type QueueRouteDeps = DescribeDeps & PauseDeps;

/** Looking at queues, and holding them. */
export function addQueueRoutes(app: HttpApp, deps: QueueRouteDeps): void {
  app.get(
    `${root}/queues`,
    {
      schema: {
        summary: 'Every queue: what holds for it, whether it is paused, and what is in it',
        response: { 200: schemas.QueuesSchema },
      },
    },
    async (_request, reply) => reply.send({ queues: (await describeQueues(deps)).map(presentQueue) }),
  );

  app.post(
    `${root}/queues/:queue/pause`,
    {
      schema: {
        summary: 'Let no job of the queue begin; what runs runs on',
        params: QueueParams,
        body: schemas.PauseBody,
        response: { 200: schemas.PauseSchema },
      },
    },
    async (request, reply) => {
      const queue = readQueueName(request.params.queue);
      const pause = await pauseQueue(deps, {
        queue,
        by: actorOf(request),
        reason: request.body?.reason ?? null,
      });
      return reply.send({ queue, ...presentPause(pause) });
    },
  );

  app.post(
    `${root}/queues/:queue/resume`,
    {
      schema: {
        summary: 'Let the jobs of a paused queue begin again',
        params: QueueParams,
        body: schemas.PauseBody,
        response: { 200: schemas.PauseSchema },
      },
    },
    async (request, reply) => {
      const queue = readQueueName(request.params.queue);
      await resumeQueue(deps, { queue, by: actorOf(request), reason: request.body?.reason ?? null });
      return reply.send({ queue, ...presentPause(null) });
    },
  );
}
