import { encodeCursor, paginationOf, readPage, type PageQuery, type PageRequest } from '../../kernel/page.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { traceparentOf } from '../../platform/http/traceparent.ts';
import { enqueueJob, type EnqueueDeps } from '../usecase/enqueue-job.ts';
import { getJob } from '../usecase/find-job.ts';
import { listDeadJobs } from '../usecase/list-dead-jobs.ts';
import { listJobs, type JobPage, type ListPage } from '../usecase/list-jobs.ts';
import type { JobFilter, JobReader } from '../usecase/reading-ports.ts';
import { invalidInput } from './invalid-input.ts';
import { presentGroup, presentJob, presentToldJob } from './present-job.ts';
import { readJobId, readOptionalInstant, readQueueName } from './read-fields.ts';
import { root } from './root.ts';
import * as schemas from './schemas.ts';

export type JobRouteDeps = EnqueueDeps & Readonly<{ reader: JobReader }>;

/** Adding jobs, and looking at them. */
export function addJobRoutes(app: HttpApp, deps: JobRouteDeps): void {
  addEnqueueRoute(app, deps);

  app.get(
    root,
    {
      schema: {
        summary: 'Jobs, newest first',
        querystring: schemas.JobListQuery,
        response: { 200: schemas.JobListSchema },
      },
    },
    async ({ query }, reply) => {
      const page = readListPage(query);
      const filter = { ...filterOf(query), status: query.status, dedupeKey: query.dedupe_key };
      return reply.send(presentPage(page, await listJobs(deps.reader, filter, listPageOf(page))));
    },
  );

  app.get(
    `${root}/dead`,
    {
      schema: {
        summary: 'Dead letters, newest first, and what most of them died of',
        querystring: schemas.DeadListQuery,
        response: { 200: schemas.DeadListSchema },
      },
    },
    async ({ query }, reply) => {
      const page = readListPage(query);
      const filter = { ...filterOf(query), error: query.error, resolution: query.resolution };
      const dead = await listDeadJobs(deps.reader, filter, listPageOf(page));
      return reply.send({
        ...presentPage(page, dead.page),
        groups: dead.groups.groups.map(presentGroup),
        ...(dead.groups.isPartial ? { groups_are_partial: true } : {}),
      });
    },
  );

  app.get(
    `${root}/:id`,
    {
      schema: {
        summary: 'One job with its failed attempts and what people did to it',
        params: schemas.JobParams,
        response: { 200: schemas.ToldJobSchema },
      },
    },
    async ({ params }, reply) => reply.send(presentToldJob(await getJob(deps.reader, readJobId(params.id)))),
  );
}

function addEnqueueRoute(app: HttpApp, deps: EnqueueDeps): void {
  app.post(
    root,
    {
      config: { exactJson: true },
      schema: {
        summary: 'Add a job to a queue; with a dedupe key that is taken, the job that has it is the answer',
        body: schemas.NewJobBody,
        response: { 200: schemas.EnqueuedSchema, 202: schemas.EnqueuedSchema },
      },
    },
    async (request, reply) => {
      const { body } = request;
      const { jobId, status, isDuplicate } = await enqueueJob(deps, {
        queue: readQueueName(body.queue),
        // Its numbers were found to be what a double is, so nothing is lost by writing them anew.
        payload: JSON.stringify(body.payload),
        dedupeKey: body.dedupe_key ?? null,
        priority: body.priority ?? 0,
        runAt: readOptionalInstant('run_at', body.run_at) ?? null,
        maxRetries: body.max_retries ?? null,
        trace: traceparentOf(request),
      });
      return reply.code(isDuplicate ? 200 : 202).send({ job_id: jobId, status, duplicate: isDuplicate });
    },
  );
}

type FilterQuery = Readonly<{
  queue?: string | undefined;
  created_from?: string | undefined;
  created_to?: string | undefined;
}>;

function filterOf(query: FilterQuery): JobFilter {
  return {
    queue: query.queue,
    createdFrom: readOptionalInstant('created_from', query.created_from),
    createdTo: readOptionalInstant('created_to', query.created_to),
  };
}

function readListPage({ page, page_size, cursor }: PageQuery): PageRequest {
  const read = readPage({ page, page_size, cursor }, ['uuid']);
  if (read === null) throw invalidInput('cursor', 'invalid', 'must be one of ours');
  return read;
}

function listPageOf(page: PageRequest): ListPage {
  return page.by === 'number' ? page : { ...page, after: page.after?.[0] ?? null };
}

function presentPage(page: PageRequest, { jobs, count, hasNext, next }: JobPage): object {
  const isByCursor = page.by === 'keyset' || next !== null;
  return {
    jobs: jobs.map(presentJob),
    pagination: paginationOf({
      total: count.total,
      isEstimate: count.isEstimate,
      page: page.page,
      pageSize: page.pageSize,
      hasNext,
      ...(isByCursor ? { nextCursor: next === null ? null : encodeCursor([next]) } : {}),
    }),
  };
}
