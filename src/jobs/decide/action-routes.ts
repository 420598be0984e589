import { maskBeginning, noMasks, type Masks } from '../../kernel/protect/protection.ts';
import { formatInstant } from '../../kernel/timestamp.ts';
import { isUuid } from '../../kernel/uuid.ts';
import { addActionRoute, byOf } from '../../platform/http/action-route.ts';
import { scopeOfBody, scopeOfPath } from '../../platform/http/access/item-scope.ts';
import type { PayloadMasks } from '../../platform/http/access/payload-masks.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { invalidField } from '../../platform/http/slice-input.ts';
import {
  JobParams,
  jobScope,
  presentPause,
  QueueParams,
  readInstant,
  readJobId,
  readQueueName,
  root,
} from '../route-parts.ts';
import { actOnJob, type Action } from './act-on-job.ts';
import * as schemas from './action-schemas.ts';
import {
  previewDead,
  shownErrorLength,
  type DeadFilter,
  type DeadSample,
  type RequeuePreview,
} from './find-dead.ts';
import { pauseQueue, requireKnownQueue, resumeQueue, type PauseDeps } from './pause-queue.ts';
import { requeueDead, type Requeued, type RequeueDeps } from './requeue-dead.ts';

export type ActionRouteDeps = RequeueDeps & PauseDeps & Masking;

type Masking = Readonly<{ masking: PayloadMasks }>;

export function addActionRoutes(app: HttpApp, deps: ActionRouteDeps): void {
  addJobAction(app, deps, {
    action: 'requeue',
    summary: 'Requeue a dead letter',
    description: 'The job becomes pending with a fresh retry count. 409 if its dedupe key is taken.',
  });
  addJobAction(app, deps, {
    action: 'discard',
    summary: 'Acknowledge a dead letter without retrying it',
    description: 'The job stays dead, and no longer needs attention.',
  });
  addJobAction(app, deps, {
    action: 'cancel',
    summary: 'Cancel an unfinished job',
    description: 'Also while it runs: its worker then loses the lease.',
  });
  addRequeue(app, deps);
  addPause(app, deps);
}

type JobAction = Readonly<{ action: Action; summary: string; description: string }>;

function addJobAction(app: HttpApp, deps: ActionRouteDeps, { action, ...texts }: JobAction): void {
  addActionRoute(app, {
    path: `${root}/:id/${action}`,
    access: { permission: `jobs:jobs:${action}`, scope: jobScope(deps.db) },
    operationId: `${action}Job`,
    ...texts,
    errors: [404, 409],
    params: JobParams,
    body: schemas.ReasonBody,
    answer: schemas.ActedSchema,
    async act({ params, by }) {
      const jobId = readJobId(params.id);
      return { job_id: jobId, status: await actOnJob(deps, action, jobId, by) };
    },
  });
}

function addRequeue(app: HttpApp, deps: ActionRouteDeps): void {
  app.post(
    `${root}/requeue`,
    {
      config: { access: { permission: 'jobs:jobs:requeue', scope: scopeOfBody('queues', 'queue') } },
      schema: {
        operationId: 'requeueJobs',
        summary: 'Requeue the dead letters that match a filter',
        description:
          'Needs at least one filter. With `preview` nothing changes, and the answer counts what matches. If `has_more` is true, repeat the request.',
        errors: [404, 409],
        takesActor: true,
        body: schemas.RequeueBody,
        response: { 200: schemas.RequeuedSchema },
      },
    },
    async (request, reply) => {
      const { body } = request;
      const filter = filterOf(body);
      if (filter.queue !== null) await requireKnownQueue(deps, filter.queue);
      deps.masking.requireTexts(request, 'error', body.error);
      if (body.preview === true) {
        const preview = await previewDead(deps.db, filter);
        return reply.send(presentPreview(preview, ({ queue }) => deps.masking.of(request, queue)));
      }
      const by = byOf(request, body.reason ?? null);
      const limit = body.limit ?? schemas.defaultRequeueLimit;
      return reply.send(presentRequeued(await requeueDead(deps, { filter, limit, by })));
    },
  );
}

function addPause(app: HttpApp, deps: PauseDeps & Masking): void {
  addActionRoute(app, {
    path: `${root}/queues/:queue/pause`,
    access: { permission: 'jobs:queues:pause', scope: scopeOfPath('queues', 'queue') },
    operationId: 'pauseQueue',
    summary: 'Pause a queue',
    description:
      'Answers after about a second, when no worker starts its jobs any more. Running jobs finish.',
    errors: [404],
    params: QueueParams,
    body: schemas.PauseBody,
    answer: schemas.PauseSchema,
    async act({ params, body, by: { actor, reason, act }, request }) {
      const queue = readQueueName(params.queue);
      const isNew = body?.create ?? false;
      const pause = await pauseQueue(deps, { queue, by: actor, reason, act, isNew });
      return { queue, ...presentPause(pause, deps.masking.of(request, queue)) };
    },
  });
  addActionRoute(app, {
    path: `${root}/queues/:queue/resume`,
    access: { permission: 'jobs:queues:pause', scope: scopeOfPath('queues', 'queue') },
    operationId: 'resumeQueue',
    summary: 'Resume a paused queue',
    description: 'A queue that is not paused stays as it is.',
    errors: [404],
    params: QueueParams,
    body: schemas.ReasonBody,
    answer: schemas.PauseSchema,
    async act({ params, by: { actor, reason, act } }) {
      const queue = readQueueName(params.queue);
      await resumeQueue(deps, { queue, by: actor, reason, act });
      return { queue, ...presentPause(null, noMasks) };
    },
  });
}

type FilterBody = Readonly<{
  queue?: string | undefined;
  error?: string | undefined;
  fingerprint?: string | undefined;
  created_from?: string | undefined;
  created_to?: string | undefined;
  job_ids?: readonly string[] | undefined;
}>;

function filterOf(body: FilterBody): DeadFilter {
  if (schemas.requeueCriteria.every((criterion) => body[criterion] === undefined))
    throw invalidField(
      'jobs',
      'body',
      'min_properties',
      `must have one of: ${schemas.requeueCriteria.join(', ')}`,
    );
  return {
    queue: body.queue === undefined ? null : readQueueName(body.queue),
    error: body.error ?? null,
    fingerprint: body.fingerprint ?? null,
    createdFrom: readInstant('created_from', body.created_from) ?? null,
    createdTo: readInstant('created_to', body.created_to) ?? null,
    jobIds: body.job_ids === undefined ? null : readJobIds(body.job_ids),
  };
}

function readJobIds(texts: readonly string[]): readonly string[] {
  const wrong = texts.findIndex((text) => !isUuid(text));
  if (wrong >= 0) throw invalidField('jobs', `job_ids.${wrong}`, 'format', 'must be a UUID');
  return texts.map((text) => text.toLowerCase());
}

function presentRequeued({ requeued, skipped, skippedJobs, isMore }: Requeued): object {
  return {
    preview: false,
    requeued,
    skipped,
    skipped_jobs: skippedJobs.map(({ jobId, why, holder }) => ({
      job_id: jobId,
      reason: why === 'key_taken' ? 'dedupe_key_taken' : why,
      holder_job_id: holder,
    })),
    has_more: isMore,
  };
}

function presentPreview(
  { matched, isMore, keyTaken, sample }: RequeuePreview,
  masksOf: (job: DeadSample) => Masks,
): object {
  return {
    preview: true,
    matched,
    has_more: isMore,
    dedupe_key_taken: keyTaken,
    sample: sample.map((job) => ({
      job_id: job.jobId,
      queue: job.queue,
      error: maskBeginning(masksOf(job), job.error, shownErrorLength),
      created_at: formatInstant(job.createdAt),
      completed_at: formatInstant(job.completedAt),
    })),
  };
}
