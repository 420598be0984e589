import { Type, type TSchema } from 'typebox';
import { PaginationSchema, pageParameters } from '../../platform/http/page-schema.ts';
import { AsOf, closed, Instant, Masked, nullable, Timestamp } from '../../platform/http/schema-parts.ts';
import { resolutions, statuses } from '../domain/job.ts';
import { resolutionFilters } from './job-conditions.ts';

const JobId = Type.String({ format: 'uuid' });
const StatusSchema = Type.Enum([...statuses]);
const Fingerprint = Type.String({
  description: 'The same for failures with the same cause.',
  examples: ['v2:3b0e6c1f9a7d42588c1e0f6a5d9b7c34'],
});
const listFilter = {
  queue: Type.Optional(Type.String({ examples: ['mail'], minLength: 1, maxLength: 100 })),
  fingerprint: Type.Optional(
    Type.String({ minLength: 1, maxLength: 100, description: 'Of the last failure.' }),
  ),
  created_from: Type.Optional(Instant),
  created_to: Type.Optional(Instant),
};

const ErrorPrefix = Type.String({
  examples: ['SMTP 451: try again later'],
  minLength: 1,
  maxLength: 1000,
  description: 'Prefix of the error message.',
});

/** What the list filters by, and what its facets count. */
const jobFilter = {
  status: Type.Optional(StatusSchema),
  dedupe_key: Type.Optional(Type.String({ minLength: 1, maxLength: 500 })),
  error: Type.Optional(ErrorPrefix),
  resolution: Type.Optional(
    Type.Enum([...resolutionFilters], {
      description: '`unresolved`: neither cancelled nor discarded. Default: any.',
    }),
  ),
  ...listFilter,
};

export const JobFacetsQuery = Type.Object(jobFilter, closed);

export const DeadListQuery = Type.Object(
  {
    error: Type.Optional(ErrorPrefix),
    resolution: Type.Optional(
      Type.Enum([...resolutionFilters], {
        default: 'unresolved',
        description: 'Default: only those neither cancelled nor discarded.',
      }),
    ),
    ...listFilter,
    ...pageParameters,
  },
  closed,
);

/** Response schemas only document; `present-job.ts` defines the fields. */
const job = {
  job_id: JobId,
  queue: Type.String({ examples: ['mail'] }),
  payload: Type.Unknown({
    examples: [{ to: 'alice@example.com' }],
    description: 'As stored; null if omitted from a list.',
  }),
  status: StatusSchema,
  retry_count: Type.Integer({ description: 'Failed attempts so far.' }),
  max_retries: Type.Integer({ examples: [3], description: 'Failures before dead-lettering.' }),
  error_message: nullable(Type.String({ description: 'Of the last failure.' })),
  result: Type.Unknown({ examples: [null], description: 'Returned by the worker; lists omit large values.' }),
  dedupe_key: nullable(Type.String()),
  priority: Type.Integer(),
  run_at: nullable(
    Type.String({ format: 'date-time', description: 'When it is due; null unless it is waiting.' }),
  ),
  created_at: nullable(Timestamp),
  started_at: nullable(Timestamp),
  completed_at: nullable(Timestamp),
  resolution: nullable(Type.Enum([...resolutions])),
  needs_attention: Type.Boolean({ description: 'Dead, and neither cancelled nor discarded.' }),
  deferrals: Type.Integer({ description: 'How often it was deferred without a failure.' }),
  progress: Type.Unknown({
    examples: [null],
    description: 'Last reported by the worker; lists omit large values.',
  }),
  trace: nullable(Type.String({ description: 'Traceparent of the caller that added it.' })),
  created_by: nullable(
    Type.String({
      examples: ['key:k7Qm2xTa'],
      description: 'Who added it; null without authentication, and if it was added in SQL.',
    }),
  ),
  fingerprint: nullable(Fingerprint),
  lease: nullable(
    Type.Object(
      { owner: nullable(Type.String()), until: nullable(Timestamp), epoch: Type.Integer() },
      { description: 'Null unless it is running.' },
    ),
  ),
  masked: Masked,
  payload_omitted: Type.Optional(
    Type.Literal(true, { description: 'Too large: more than 16 KiB in lists, 16 MiB elsewhere.' }),
  ),
};

const JobSchema = Type.Object(job, { title: 'Job' });

export const JobListQuery = Type.Object(
  {
    ...jobFilter,
    fields: Type.Optional(
      Type.Array(Type.Enum(Object.keys(job)), {
        minItems: 1,
        maxItems: Object.keys(job).length,
        description: 'Only these fields of each job, and `job_id`. May be repeated.',
      }),
    ),
    ...pageParameters,
  },
  closed,
);

const JobPaginationSchema = Type.Object({
  ...PaginationSchema.properties,
  next_cursor: Type.Optional(
    nullable(
      Type.String({
        description:
          'Sent if the request had a `cursor`, and if a list by page number can continue only this way because ' +
          'it reached its scan limit. A short page may have a next one.',
      }),
    ),
  ),
});

export const JobListSchema: TSchema = Type.Object({
  jobs: Type.Array(JobSchema),
  as_of: AsOf,
  pagination: JobPaginationSchema,
});

const facetOf = (value: TSchema): TSchema =>
  Type.Object({
    value,
    count: Type.Integer({ minimum: 0, examples: [12] }),
    is_estimate: Type.Optional(Type.Literal(true, { description: 'Only if it is an estimate.' })),
  });

export const JobFacetsSchema: TSchema = Type.Object(
  {
    total_count: Type.Integer({ minimum: 0, examples: [12] }),
    total_is_estimate: Type.Optional(
      Type.Literal(true, { description: 'Only if `total_count` is an estimate.' }),
    ),
    facets: Type.Object({
      status: Type.Array(facetOf(StatusSchema), { description: 'Every status that the filter allows.' }),
      queue: Type.Array(facetOf(Type.String({ examples: ['mail'] })), {
        description: 'The 20 most frequent among the newest 25 000 jobs.',
      }),
    }),
    as_of: AsOf,
  },
  { title: 'JobFacets' },
);

export const JobDetailsSchema: TSchema = Type.Object(
  {
    ...job,
    attempts: Type.Array(
      Type.Object({
        retry_count: Type.Integer({ description: 'Including this failure.' }),
        status_to: StatusSchema,
        error: Type.String({ examples: ['SMTP 451: try again later'] }),
        error_class: nullable(Type.String({ description: 'Class of the error; null if unknown.' })),
        stack: nullable(
          Type.String({ description: 'Stack trace, truncated; only for the newest failures.' }),
        ),
        fingerprint: nullable(Fingerprint),
        worker: nullable(Type.String({ description: 'Null if the worker was lost.' })),
        epoch: Type.Integer(),
        started_at: nullable(Timestamp),
        ended_at: nullable(Timestamp),
      }),
      { description: 'Failed attempts, oldest first.' },
    ),
    actions: Type.Array(
      Type.Object({
        action: Type.String({ examples: ['cancel'] }),
        status_from: StatusSchema,
        status_to: StatusSchema,
        actor: Type.String({ examples: ['alice@example.com'] }),
        reason: nullable(Type.String()),
        at: nullable(Timestamp),
      }),
      { description: 'Actions of people, oldest first.' },
    ),
  },
  { title: 'JobDetails' },
);

export const DeadListSchema: TSchema = Type.Object({
  jobs: Type.Array(JobSchema),
  groups: Type.Array(
    Type.Object({
      queue: Type.String({ examples: ['mail'] }),
      fingerprint: nullable(Fingerprint),
      error: nullable(
        Type.String({
          examples: ['SMTP 451: try again later'],
          description: 'The beginning of the newest error.',
        }),
      ),
      count: Type.Integer(),
      last_at: nullable(Type.String({ format: 'date-time', description: 'When the newest of them died.' })),
    }),
    {
      description:
        'By cause, most frequent first. Jobs without a fingerprint (cancelled ones) are grouped by their errors.',
    },
  ),
  groups_are_partial: Type.Optional(
    Type.Literal(true, { description: 'Only the newest dead letters were counted.' }),
  ),
  as_of: AsOf,
  pagination: JobPaginationSchema,
});
