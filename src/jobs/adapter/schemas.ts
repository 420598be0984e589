import { Type, type TSchema } from 'typebox';
import { PaginationSchema, pageParameters } from '../../platform/http/page-schema.ts';
import { resolutions, statuses } from '../domain/job.ts';
import { resolutionFilters } from '../usecase/reading-ports.ts';

/** What the routes for enqueuing and looking take and answer; the API's description is made from these. */

const nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);
const Timestamp = Type.String({ format: 'date-time', examples: ['2026-02-20T10:30:00.000+00:00'] });
const Instant = Type.String({ maxLength: 64, description: 'ISO 8601 with its zone.' });
const JobId = Type.String({ format: 'uuid' });
const StatusSchema = Type.Enum([...statuses]);
const QueueName = Type.String({
  minLength: 1,
  maxLength: 100,
  description: 'Lower-case letters, digits, dots, hyphens and underscores; a letter comes first.',
});
const DedupeKey = Type.String({ minLength: 1, maxLength: 500 });

/** A misspelt parameter is told, not ignored. */
const closed = { additionalProperties: false } as const;

/** Checked by hand, so that a wrong name or id is refused before the database is asked. */
export const JobParams = Type.Object({ id: Type.String({ maxLength: 1000, description: 'A UUID.' }) });
export const QueueParams = Type.Object({ queue: Type.String({ maxLength: 1000 }) });

export const NewJobBody = Type.Object(
  {
    queue: QueueName,
    payload: Type.Unknown({ description: 'Any JSON: what whoever does the work is given.' }),
    dedupe_key: Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: 500,
        description: 'At most one job of the queue that is not over has it; a second one is a duplicate.',
      }),
    ),
    priority: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: 100,
        default: 0,
        description: 'Each step puts the job a minute ahead.',
      }),
    ),
    run_at: Type.Optional(
      Type.String({
        maxLength: 64,
        description: 'Not before this time; ISO 8601 with its zone. Now, if left out.',
      }),
    ),
    max_retries: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1000,
        description: 'At so many failures it is dead; if left out, as its queue says.',
      }),
    ),
  },
  closed,
);

export const EnqueuedSchema: TSchema = Type.Object(
  {
    job_id: JobId,
    status: StatusSchema,
    duplicate: Type.Boolean({
      description: 'A job with this dedupe key was there and is not over: this is that one.',
    }),
  },
  { title: 'EnqueuedJob' },
);

const listParameters = {
  queue: Type.Optional(Type.String({ minLength: 1, maxLength: 100 })),
  created_from: Type.Optional(Instant),
  created_to: Type.Optional(Instant),
  ...pageParameters,
};

export const JobListQuery = Type.Object(
  {
    status: Type.Optional(StatusSchema),
    dedupe_key: Type.Optional(DedupeKey),
    ...listParameters,
  },
  closed,
);

export const DeadListQuery = Type.Object(
  {
    error: Type.Optional(
      Type.String({ minLength: 1, maxLength: 1000, description: 'How the error begins.' }),
    ),
    resolution: Type.Optional(
      Type.Enum([...resolutionFilters], {
        default: 'unresolved',
        description: 'What people have decided; by default only those that nobody has decided about.',
      }),
    ),
    ...listParameters,
  },
  closed,
);

/** Answers are typed by what presents them; their schemas only describe them. */
const job = {
  job_id: JobId,
  queue: Type.String(),
  payload: Type.Unknown({ description: 'As it is stored; null where a list leaves it out.' }),
  status: StatusSchema,
  retry_count: Type.Integer({ description: 'How often it has failed.' }),
  max_retries: Type.Integer({ description: 'At so many failures it is dead.' }),
  error_message: nullable(Type.String({ description: 'Of the last failure.' })),
  result: Type.Unknown({ description: 'What its worker told; a list leaves out what is large.' }),
  dedupe_key: nullable(Type.String()),
  priority: Type.Integer(),
  run_at: nullable(
    Type.String({ format: 'date-time', description: 'Only while it waits: not before this time.' }),
  ),
  created_at: nullable(Timestamp),
  started_at: nullable(Timestamp),
  completed_at: nullable(Timestamp),
  resolution: nullable(Type.Enum([...resolutions])),
  needs_person: Type.Boolean({ description: 'Dead, and nobody has decided what becomes of it.' }),
  deferrals: Type.Integer({ description: 'How often it was put off without a failure.' }),
  progress: Type.Unknown({ description: 'What its worker told last; a list leaves out what is large.' }),
  trace: nullable(Type.String({ description: 'The traceparent of whoever added it.' })),
  lease: nullable(
    Type.Object(
      { owner: nullable(Type.String()), until: nullable(Timestamp), epoch: Type.Integer() },
      { description: 'Only while it runs.' },
    ),
  ),
  payload_omitted: Type.Optional(Type.Literal(true, { description: 'Only in lists: too large to show.' })),
};

const JobSchema = Type.Object(job, { title: 'Job' });

const JobPaginationSchema = Type.Object({
  ...PaginationSchema.properties,
  next_cursor: Type.Optional(
    nullable(
      Type.String({
        description:
          'Where `cursor` was sent, and where a list by numbers goes on only so: it looks at the newest jobs only. ' +
          'A page may be short and have a next one.',
      }),
    ),
  ),
});

export const JobListSchema: TSchema = Type.Object({
  jobs: Type.Array(JobSchema),
  pagination: JobPaginationSchema,
});

export const ToldJobSchema: TSchema = Type.Object(
  {
    ...job,
    attempts: Type.Array(
      Type.Object({
        retry_count: Type.Integer({ description: 'With this failure.' }),
        status_to: StatusSchema,
        error: Type.String(),
        worker: nullable(Type.String({ description: 'Null where the worker was lost.' })),
        epoch: Type.Integer(),
        started_at: nullable(Timestamp),
        ended_at: nullable(Timestamp),
      }),
      { description: 'Those that failed, the oldest first.' },
    ),
    actions: Type.Array(
      Type.Object({
        action: Type.String(),
        status_from: StatusSchema,
        status_to: StatusSchema,
        actor: Type.String(),
        reason: nullable(Type.String()),
        at: nullable(Timestamp),
      }),
      { description: 'What people did, the oldest first.' },
    ),
  },
  { title: 'ToldJob' },
);

export const DeadListSchema: TSchema = Type.Object({
  jobs: Type.Array(JobSchema),
  groups: Type.Array(
    Type.Object({
      queue: Type.String(),
      error: nullable(Type.String({ description: 'How their errors begin.' })),
      count: Type.Integer(),
      last_at: nullable(Type.String({ format: 'date-time', description: 'When the last of them died.' })),
    }),
    { description: 'The most frequent first.' },
  ),
  groups_are_partial: Type.Optional(
    Type.Literal(true, { description: 'Only where there are more than were counted; the newest were.' }),
  ),
  pagination: JobPaginationSchema,
});
