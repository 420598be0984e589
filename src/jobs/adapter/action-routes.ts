import { formatTimestamp } from '../../kernel/timestamp.ts';
import { isUuid } from '../../kernel/uuid.ts';
import { actorOf } from '../../platform/http/actor.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import type { Action, DeadFilter, JobActions, RequeuePreview } from '../usecase/acting-ports.ts';
import { actOnJob, type ActDeps } from '../usecase/act-on-job.ts';
import { previewRequeue, requeueJobs, type Requeued, type RequeueDeps } from '../usecase/requeue-jobs.ts';
import * as schemas from './action-schemas.ts';
import { invalidInput } from './invalid-input.ts';
import { readJobId, readOptionalInstant, readQueueName } from './read-fields.ts';
import { root } from './root.ts';

export type ActionRouteDeps = ActDeps & RequeueDeps & Readonly<{ actions: JobActions }>;

/** What a person decides about jobs. */
export function addActionRoutes(app: HttpApp, deps: ActionRouteDeps): void {
  const addDecision = (action: Action, summary: string): void => {
    app.post(
      `${root}/:id/${action}`,
      {
        schema: {
          summary,
          params: schemas.IdParams,
          body: schemas.ReasonBody,
          response: { 200: schemas.ActedSchema },
        },
      },
      async (request, reply) => {
        const jobId = readJobId(request.params.id);
        const by = { actor: actorOf(request), reason: request.body?.reason ?? null };
        return reply.send({ job_id: jobId, status: await actOnJob(deps, action, jobId, by) });
      },
    );
  };
  addDecision('requeue', 'Let a dead letter go again, with a new budget of retries');
  addDecision('discard', 'Say that a dead letter has been seen and nothing follows');
  addDecision('cancel', 'Call off a job that is not over, also while it runs');

  app.post(
    `${root}/requeue`,
    {
      schema: {
        summary: 'Let the dead letters that a filter means go again, or say which these are',
        body: schemas.RequeueBody,
        response: { 200: schemas.RequeuedSchema },
      },
    },
    async (request, reply) => {
      const { body } = request;
      const filter = filterOf(body);
      if (body.preview === true) return reply.send(presentPreview(await previewRequeue(deps, filter)));
      const by = { actor: actorOf(request), reason: body.reason ?? null };
      const limit = body.limit ?? schemas.defaultRequeueLimit;
      return reply.send(presentRequeued(await requeueJobs(deps, { filter, limit, by })));
    },
  );
}

type FilterBody = Readonly<{
  queue?: string | undefined;
  error?: string | undefined;
  created_from?: string | undefined;
  created_to?: string | undefined;
  job_ids?: readonly string[] | undefined;
}>;

function filterOf(body: FilterBody): DeadFilter {
  const criteria = [body.queue, body.error, body.created_from, body.created_to, body.job_ids];
  if (criteria.every((criterion) => criterion === undefined))
    throw invalidInput(
      'body',
      'min_properties',
      'must have one of: queue, error, created_from, created_to, job_ids',
    );
  return {
    queue: body.queue === undefined ? null : readQueueName(body.queue),
    error: body.error ?? null,
    createdFrom: readOptionalInstant('created_from', body.created_from) ?? null,
    createdTo: readOptionalInstant('created_to', body.created_to) ?? null,
    jobIds: body.job_ids === undefined ? null : readJobIds(body.job_ids),
  };
}

function readJobIds(texts: readonly string[]): readonly string[] {
  const wrong = texts.findIndex((text) => !isUuid(text));
  if (wrong >= 0) throw invalidInput(`job_ids.${wrong}`, 'format', 'must be a UUID');
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

function presentPreview({ matched, isMore, keyTaken, sample }: RequeuePreview): object {
  return {
    preview: true,
    matched,
    has_more: isMore,
    dedupe_key_taken: keyTaken,
    sample: sample.map(({ jobId, queue, error, createdAt, completedAt }) => ({
      job_id: jobId,
      queue,
      error,
      created_at: formatTimestamp(createdAt),
      completed_at: completedAt === null ? null : formatTimestamp(completedAt),
    })),
  };
}
