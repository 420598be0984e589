import { Type, type TSchema } from 'typebox';
import { statuses } from '../domain/job.ts';

/** What workers in other processes send and get. */

/** A misspelt field is told, not ignored. */
const closed = { additionalProperties: false } as const;

/** Both are checked by hand, so that a wrong one never reaches the database. */
export const QueueParams = Type.Object({ queue: Type.String({ maxLength: 1000 }) });
export const IdParams = Type.Object({ id: Type.String({ maxLength: 1000, description: 'A UUID.' }) });

const longestLeaseSeconds = 3600;
const longestWaitSeconds = 30;
export const defaultLeaseSeconds = 60;

const LeaseSeconds = Type.Integer({
  minimum: 1,
  maximum: longestLeaseSeconds,
  default: defaultLeaseSeconds,
  description:
    'How long it is yours without another word. Never beyond the timeout of its queue; one that is shorter tells a worker that is gone from one that is slow.',
});

export const ClaimBody = Type.Object(
  {
    worker: Type.String({
      minLength: 1,
      maxLength: 200,
      description:
        'One name per process, and a new one at every start: a job that must run alone is given to one that has no other, and what a process held before its restart counts until those leases are over.',
    }),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 100,
        default: 1,
        description:
          'At most so many. There may be fewer where more are due: one answer carries up to 16 MiB of payloads, and one job in any case.',
      }),
    ),
    lease_seconds: Type.Optional(LeaseSeconds),
    wait_seconds: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: longestWaitSeconds,
        default: 0,
        description: 'How long to wait for a job where there is none.',
      }),
    ),
  },
  closed,
);

const Epoch = Type.Integer({
  minimum: 1,
  maximum: Number.MAX_SAFE_INTEGER,
  description: 'From the claim: the right to speak about the job.',
});

const anyJson = (description: string) => Type.Optional(Type.Unknown({ description }));

export const CompleteBody = Type.Object(
  { epoch: Epoch, result: anyJson('What came of it; any JSON.') },
  closed,
);

export const FailBody = Type.Object(
  {
    epoch: Epoch,
    error: Type.String({ description: 'What is long is cut.' }),
    retryable: Type.Optional(
      Type.Boolean({ default: true, description: 'False: it will never succeed, and is dead at once.' }),
    ),
    retry_after_seconds: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 31_536_000,
        description: 'It is not tried before; its backoff may take longer.',
      }),
    ),
  },
  closed,
);

export const maxProgressBytes = 65_536;

export const HeartbeatBody = Type.Object(
  {
    epoch: Epoch,
    lease_seconds: Type.Optional(LeaseSeconds),
    progress: anyJson('How far it has come; any JSON up to 64 KiB.'),
  },
  closed,
);

export const ReleaseBody = Type.Object({ epoch: Epoch }, closed);

/** Answers are typed by what presents them; their schemas only describe them. */
const StatusSchema = Type.Enum([...statuses]);
const Timestamp = Type.String({ format: 'date-time', examples: ['2026-02-20T10:30:00.000+00:00'] });
const JobId = Type.String({ format: 'uuid' });

export const ClaimedSchema: TSchema = Type.Object({
  jobs: Type.Array(
    Type.Object(
      {
        job_id: JobId,
        queue: Type.String(),
        payload: Type.Unknown(),
        retry_count: Type.Integer(),
        max_retries: Type.Integer(),
        epoch: Type.Integer(),
        lease_until: Timestamp,
      },
      { title: 'ClaimedJob' },
    ),
  ),
});

export const FinishedSchema: TSchema = Type.Object({ job_id: JobId, status: StatusSchema });

export const RenewedSchema: TSchema = Type.Object({
  job_id: JobId,
  status: StatusSchema,
  lease_until: Timestamp,
});
