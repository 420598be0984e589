import { Type, type TSchema } from 'typebox';
import {
  checkedAs,
  closed,
  Instant,
  nullable,
  Reason,
  Timestamp,
  Uuid,
} from '../../platform/http/schema-parts.ts';
import { statuses } from '../domain/job.ts';
import { pauseProperties, queueNameChecks } from '../route-parts.ts';

const reason = Type.Optional(Reason);

export const ReasonBody = Type.Optional(nullable(Type.Object({ reason }, closed)));

export const defaultRequeueLimit = 1000;

export const requeueCriteria = [
  'queue',
  'error',
  'fingerprint',
  'created_from',
  'created_to',
  'job_ids',
] as const;

export const RequeueBody = Type.Object(
  {
    queue: Type.Optional(Type.String({ examples: ['mail'], maxLength: 1000, ...queueNameChecks })),
    error: Type.Optional(
      Type.String({ minLength: 1, maxLength: 4000, description: 'Prefix of the error message.' }),
    ),
    fingerprint: Type.Optional(
      Type.String({ minLength: 1, maxLength: 100, description: 'Of the last failure.' }),
    ),
    created_from: Type.Optional(Instant),
    created_to: Type.Optional(Instant),
    job_ids: Type.Optional(
      Type.Array(Uuid, {
        minItems: 1,
        maxItems: 1000,
        description: 'Includes cancelled and discarded ones.',
      }),
    ),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 10_000, default: defaultRequeueLimit })),
    preview: Type.Optional(Type.Boolean({ description: 'Only return what would be requeued.' })),
    reason,
  },
  {
    ...closed,
    examples: [{ queue: 'mail', error: 'SMTP 451', reason: 'the mail server is back' }],
    ...checkedAs({ anyOf: requeueCriteria.map((name) => ({ required: [name] })) }),
  },
);

/** Response schemas only document; the routes define the fields. */
const JobId = Type.String({ format: 'uuid' });

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
        holder_job_id: nullable(Type.String({ description: 'The unfinished job that has the dedupe key.' })),
      }),
      { description: 'The first hundred.' },
    ),
    has_more: Type.Boolean({ description: 'More jobs match than the limit allows; repeat the request.' }),
  },
  { title: 'Requeued' },
);

const PreviewSchema = Type.Object(
  {
    preview: Type.Literal(true),
    matched: Type.Integer(),
    has_more: Type.Boolean({ description: 'More jobs match than were counted.' }),
    dedupe_key_taken: Type.Integer({ description: 'Matching jobs that would be skipped.' }),
    sample: Type.Array(
      Type.Object({
        job_id: JobId,
        queue: Type.String({ examples: ['mail'] }),
        error: nullable(Type.String()),
        created_at: Timestamp,
        completed_at: nullable(Timestamp),
      }),
    ),
  },
  { title: 'RequeuePreview' },
);

export const RequeuedSchema: TSchema = Type.Union([DoneSchema, PreviewSchema]);

export const PauseBody = Type.Optional(
  nullable(
    Type.Object(
      {
        reason,
        create: Type.Optional(
          Type.Boolean({
            default: false,
            description: 'Also pause a queue that does not exist yet; otherwise 404.',
          }),
        ),
      },
      closed,
    ),
  ),
);

export const PauseSchema: TSchema = Type.Object(pauseProperties, { title: 'QueuePause' });
