import { Type, type TSchema } from 'typebox';
import { statuses } from '../domain/job.ts';

/** What people decide about jobs, one by one and many at once. */

const nullable = <Schema extends TSchema>(schema: Schema) => Type.Union([schema, Type.Null()]);
/** A misspelt field is told, not ignored. */
const closed = { additionalProperties: false } as const;
const reason = Type.Optional(Type.String({ minLength: 1, maxLength: 1000, pattern: '\\S' }));
const Instant = Type.Optional(Type.String({ maxLength: 64, description: 'ISO 8601 with its zone.' }));

export const IdParams = Type.Object({ id: Type.String({ maxLength: 1000, description: 'A UUID.' }) });

export const ReasonBody = Type.Optional(nullable(Type.Object({ reason }, closed)));

export const defaultRequeueLimit = 1000;

export const RequeueBody = Type.Object(
  {
    queue: Type.Optional(Type.String({ maxLength: 1000 })),
    error: Type.Optional(
      Type.String({ minLength: 1, maxLength: 4000, description: 'How the error begins.' }),
    ),
    created_from: Instant,
    created_to: Instant,
    job_ids: Type.Optional(
      Type.Array(Type.String({ maxLength: 1000 }), {
        minItems: 1,
        maxItems: 1000,
        description: 'Named like this, also those that were cancelled or discarded are requeued.',
      }),
    ),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000, default: defaultRequeueLimit })),
    preview: Type.Optional(Type.Boolean({ description: 'Only say what would be requeued.' })),
    reason,
  },
  closed,
);

/** Answers are typed by what presents them; their schemas only describe them. */
const JobId = Type.String({ format: 'uuid' });
const Timestamp = Type.String({ format: 'date-time', examples: ['2026-02-20T10:30:00.000+00:00'] });

export const ActedSchema: TSchema = Type.Object({ job_id: JobId, status: Type.Enum([...statuses]) });

const DoneSchema = Type.Object(
  {
    preview: Type.Literal(false),
    requeued: Type.Integer(),
    skipped: Type.Integer(),
    skipped_jobs: Type.Array(
      Type.Object({
        job_id: JobId,
        reason: Type.Enum(['dedupe_key_taken', 'busy']),
        holder_job_id: nullable(Type.String({ description: 'Who has the dedupe key.' })),
      }),
      { description: 'The first hundred.' },
    ),
    has_more: Type.Boolean({ description: 'More match than the limit allows: ask again.' }),
  },
  { title: 'Requeued' },
);

const PreviewSchema = Type.Object(
  {
    preview: Type.Literal(true),
    matched: Type.Integer(),
    has_more: Type.Boolean({ description: 'There are more than were counted.' }),
    dedupe_key_taken: Type.Integer({ description: 'Of these, those that would be skipped.' }),
    sample: Type.Array(
      Type.Object({
        job_id: JobId,
        queue: Type.String(),
        error: nullable(Type.String()),
        created_at: Timestamp,
        completed_at: nullable(Timestamp),
      }),
    ),
  },
  { title: 'RequeuePreview' },
);

export const RequeuedSchema: TSchema = Type.Union([DoneSchema, PreviewSchema]);
