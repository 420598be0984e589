import type { FastifyRequest } from 'fastify';
import type { Static } from 'typebox';
import type { PageRequest } from '../../kernel/page.ts';
import { noMasks } from '../../kernel/protect/protection.ts';
import { formatTimestamp } from '../../kernel/timestamp.ts';
import { namesFor, ownFor } from '../../platform/http/access/guard-access.ts';
import type { PayloadMasks } from '../../platform/http/access/payload-masks.ts';
import { addRevealRoute } from '../../platform/http/access/reveal-route.ts';
import type { RouteAccess } from '../../platform/http/access/route-access.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { addIdPrefixRoute } from '../../platform/http/id-prefix-route.ts';
import { addListRoute, type Listed } from '../../platform/http/list-route.ts';
import { readClock } from '../../platform/postgres/read-clock.ts';
import { findIds, type TableWithIds } from '../../platform/postgres/find-ids.ts';
import { sql } from '../../platform/postgres/sql.ts';
import type { Database, Queryable } from '../../platform/postgres/database.ts';
import { statuses } from '../domain/job.ts';
import { isJobOf } from '../jobs-table.ts';
import { JobParams, jobScope, readInstant, readJobId, root } from '../route-parts.ts';
import { countFacets } from './count-facets.ts';
import { groupDeadJobs } from './dead-groups.ts';
import { findJob, jobBytes } from './find-job.ts';
import type { JobFilter } from './job-conditions.ts';
import { everyText, type Job, type ShownTexts } from './job-row.ts';
import { listJobs } from './list-jobs.ts';
import {
  presentFacets,
  presentGroup,
  presentJobDetails,
  presentListedJob,
  type Json,
} from './present-job.ts';
import * as schemas from './schemas.ts';

/** Programs that add or run jobs see those that they added, and those that they run. */
const viewJobs = {
  permission: 'jobs:jobs:view',
  own: ['jobs:jobs:enqueue', 'jobs:jobs:work'],
} as const satisfies RouteAccess;

const tables: readonly TableWithIds[] = [
  { table: sql`jobs.job_queue`, id: sql`job_id`, isArchive: false, name: sql`t.queue`, isOf: isJobOf },
];

/** More than any listed row takes: three JSON texts and the other columns. */
const listedRowBytes = 52_000;

export type JobRouteDeps = Readonly<{ db: Database; masking: PayloadMasks }>;

export function addJobRoutes(app: HttpApp, deps: JobRouteDeps): void {
  const { db, masking } = deps;
  addListRoute(app, {
    ...jobs,
    rowBytes: masking.answerBytes(listedRowBytes),
    path: root,
    access: { ...viewJobs, scope: { by: 'queues', in: 'list' } },
    operationId: 'listJobs',
    summary: 'List jobs, newest first',
    description:
      'Filters by queue, status, dedupe key, fingerprint and time. Use `page` for the first pages and `cursor` for deep or changing lists.',
    query: schemas.JobListQuery,
    answer: schemas.JobListSchema,
    require: (query, request) => requireFilter(masking, query, request),
    present: (job, { fields }, request) =>
      withFields(presentListedJob(job, masking.ofAdded(request, job.queue, job.createdBy)), fields),
    async list(query, page, request, names) {
      const asOf = await readClock(db);
      const filter = listFilterOf(query, { names, own: ownFor(request) });
      const listed = await listPage(db, { filter, page, shows: shownTexts(query.fields) });
      return { ...listed, more: { as_of: formatTimestamp(asOf) } };
    },
  });
  addFacetsRoute(app, deps);
  addDeadRoute(app, deps);
  addJobIdRoute(app, db);
  addJobDetails(app, deps);
}

const jobs = {
  slice: 'jobs',
  items: 'jobs',
  cursor: () => ['uuid'] as const,
  keyOf: ({ jobId }: Job) => [jobId],
};

function addFacetsRoute(app: HttpApp, { db, masking }: JobRouteDeps): void {
  app.get(
    `${root}/facets`,
    {
      config: { access: { ...viewJobs, scope: { by: 'queues', in: 'list' } } },
      schema: {
        operationId: 'countJobFacets',
        summary: 'Count the jobs of a list by status and queue',
        description: 'Counts among the jobs for which all filters hold. Large counts are estimates.',
        querystring: schemas.JobFacetsQuery,
        response: { 200: schemas.JobFacetsSchema },
      },
    },
    async (request, reply) => {
      requireFilter(masking, request.query, request);
      const asOf = await readClock(db);
      const scope = { names: namesFor(request), own: ownFor(request) };
      const facets = await countFacets(db, listFilterOf(request.query, scope));
      return reply.send({ ...presentFacets(facets), as_of: formatTimestamp(asOf) });
    },
  );
}

function addDeadRoute(app: HttpApp, { db, masking }: JobRouteDeps): void {
  addListRoute(app, {
    ...jobs,
    rowBytes: masking.answerBytes(listedRowBytes),
    path: `${root}/dead`,
    access: { ...viewJobs, scope: { by: 'queues', in: 'list' } },
    operationId: 'listDeadJobs',
    summary: 'List dead-lettered jobs and their most frequent causes',
    description: 'By default only those neither cancelled nor discarded, newest first.',
    query: schemas.DeadListQuery,
    answer: schemas.DeadListSchema,
    require: (query, request) => requireFilter(masking, query, request),
    present: (job, _query, request) =>
      presentListedJob(job, masking.ofAdded(request, job.queue, job.createdBy)),
    async list(query, page, request, names) {
      const filter: JobFilter = {
        ...filterOf(query),
        names,
        own: ownFor(request),
        error: query.error,
        status: 'dead_letter',
        resolution: query.resolution ?? 'unresolved',
      };
      const asOf = await readClock(db);
      const [listed, { groups, isPartial }] = await Promise.all([
        listPage(db, { filter, page }),
        groupDeadJobs(db, filter),
      ]);
      const more = {
        groups: groups.map((group) => presentGroup(group, masking.of(request, group.queue))),
        ...(isPartial ? { groups_are_partial: true } : {}),
        as_of: formatTimestamp(asOf),
      };
      return { ...listed, more };
    },
  });
}

/** Whether something matches would tell whether a guess of what is covered is right. */
function requireFilter(
  masking: PayloadMasks,
  asked: Readonly<{ dedupe_key?: string | undefined; error?: string | undefined }>,
  request: FastifyRequest,
): void {
  masking.requireVisible(request, 'dedupe_key', asked.dedupe_key, 'key');
  masking.requireTexts(request, 'error', asked.error);
}

function addJobDetails(app: HttpApp, { db, masking }: JobRouteDeps): void {
  addRevealRoute(
    app,
    { db, masking },
    {
      path: `${root}/:id/reveal`,
      permission: 'jobs:payloads:view',
      scope: jobScope(db),
      operationId: 'revealJob',
      what: 'a job',
      params: JobParams,
      answer: schemas.JobDetailsSchema,
      idOf: ({ id }) => readJobId(id),
      measure: (jobId) => jobBytes(db, jobId),
      async find(tx, jobId) {
        const found = await findJob(tx, jobId);
        return {
          resource: `jobs/jobs/${jobId}`,
          names: { queues: [found.job.queue] },
          shown: presentJobDetails(found, noMasks),
        };
      },
    },
  );
  app.get(
    `${root}/:id`,
    {
      config: { access: { ...viewJobs, scope: jobScope(db) } },
      schema: {
        operationId: 'getJob',
        summary: 'Get one job with its failed attempts and the actions on it',
        description: 'Completed jobs are found until the retention deletes them.',
        errors: [404],
        params: JobParams,
        response: { 200: schemas.JobDetailsSchema },
      },
    },
    async (request, reply) => {
      const jobId = readJobId(request.params.id);
      await request.reserveAnswer(masking.answerBytes(await jobBytes(db, jobId)));
      const found = await findJob(db, jobId);
      return reply.send(
        presentJobDetails(found, masking.ofAdded(request, found.job.queue, found.job.createdBy)),
      );
    },
  );
}

function addJobIdRoute(app: HttpApp, db: Queryable): void {
  addIdPrefixRoute(app, {
    slice: 'jobs',
    path: `${root}/ids`,
    access: { ...viewJobs, scope: { by: 'queues', in: 'list' } },
    operationId: 'findJobIds',
    items: 'jobs',
    statuses,
    find: (range, limit, names, own) => findIds(db, tables, range, { limit, names, own }),
  });
}

type FilterQuery = Readonly<{
  queue?: string | undefined;
  fingerprint?: string | undefined;
  created_from?: string | undefined;
  created_to?: string | undefined;
}>;

function filterOf(query: FilterQuery): JobFilter {
  return {
    queue: query.queue,
    fingerprint: query.fingerprint,
    createdFrom: readInstant('created_from', query.created_from),
    createdTo: readInstant('created_to', query.created_to),
  };
}

type ListQuery = Static<typeof schemas.JobFacetsQuery>;

function listFilterOf(query: ListQuery, scope: Pick<JobFilter, 'names' | 'own'>): JobFilter {
  const { status, dedupe_key: dedupeKey, error, resolution } = query;
  return { ...filterOf(query), status, dedupeKey, error, resolution, ...scope };
}

/** Without the texts that nobody asked for. */
function shownTexts(fields: readonly string[] | undefined): ShownTexts {
  if (fields === undefined) return everyText;
  const isAsked = (...names: readonly string[]): boolean => names.some((name) => fields.includes(name));
  return {
    payload: isAsked('payload', 'payload_omitted'),
    result: isAsked('result'),
    progress: isAsked('progress'),
  };
}

/** The id is always there: without it a row could not be named. */
function withFields(job: Json, fields: readonly string[] | undefined): Json {
  if (fields === undefined) return job;
  return Object.fromEntries(
    Object.entries(job).filter(([name]) => name === 'job_id' || name === 'masked' || fields.includes(name)),
  );
}

type PageOptions = Readonly<{ filter: JobFilter; page: PageRequest; shows?: ShownTexts }>;

async function listPage(db: Queryable, { filter, page, shows }: PageOptions): Promise<Listed<Job>> {
  const at = page.by === 'number' ? page : { ...page, after: page.after?.[0] ?? null };
  const { jobs: items, next, ...listed } = await listJobs(db, filter, at, shows);
  return { items, resumeAfter: next === null ? null : [next], ...listed };
}
