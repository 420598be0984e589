import { Type, type TSchema } from 'typebox';
import { checkedAs, closed, Timestamp } from '../../platform/http/schema-parts.ts';
import { statuses } from '../domain/job.ts';

/** The job of a lost worker waits at most this long. */
const maxLeaseSeconds = 3600;
/** Proxies often end requests without an answer after a minute. */
const maxWaitSeconds = 30;
/** A worker that renews at a third of it survives a pause of half a minute. */
export const defaultLeaseSeconds = 60;

const LeaseSeconds = Type.Integer({
  minimum: 1,
  maximum: maxLeaseSeconds,
  default: defaultLeaseSeconds,
  description:
    'How long the lease lasts without a heartbeat, at most the timeout of the queue. A shorter lease detects lost workers earlier.',
});

export const ClaimBody = Type.Object(
  {
    worker: Type.String({
      examples: ['mailer-1'],
      ...checkedAs({ pattern: '\\S' }),
      minLength: 1,
      maxLength: 200,
      description:
        'A name per process, new at every start. A job that must run alone is given to a worker without other jobs, and jobs that a process had before its restart count until their leases expire.',
    }),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 100,
        default: 1,
        description:
          'Maximum number of jobs. A response has at most 4 MiB of payloads, but at least one job.',
      }),
    ),
    lease_seconds: Type.Optional(LeaseSeconds),
    wait_seconds: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: maxWaitSeconds,
        default: 0,
        description: 'How long to wait if no job is due.',
      }),
    ),
  },
  closed,
);

const Epoch = Type.Integer({
  minimum: 1,
  maximum: Number.MAX_SAFE_INTEGER,
  description: 'From the claim; proves that the caller has the lease.',
});

const anyJson = (description: string) => Type.Optional(Type.Unknown({ description }));

export const CompleteBody = Type.Object(
  { epoch: Epoch, result: anyJson('Result of the job; any JSON.') },
  closed,
);

export const FailBody = Type.Object(
  {
    epoch: Epoch,
    error: Type.String({ examples: ['SMTP 451: try again later'], description: 'Truncated if it is long.' }),
    error_class: Type.Optional(
      Type.String({ description: 'Class of the exception; truncated to 200 bytes.' }),
    ),
    stack: Type.Optional(Type.String({ description: 'Stack trace; truncated to 8000 bytes.' })),
    retryable: Type.Optional(
      Type.Boolean({ default: true, description: 'False: dead-letter the job at once.' }),
    ),
    retry_after_seconds: Type.Optional(
      Type.Number({
        minimum: 0,
        maximum: 31_536_000,
        description: 'Do not retry earlier; the backoff may take longer.',
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
    progress: anyJson('Progress; any JSON up to 64 KiB.'),
  },
  closed,
);

export const ReleaseBody = Type.Object({ epoch: Epoch }, closed);

/** Response schemas only document; the routes define the fields. */
const StatusSchema = Type.Enum([...statuses]);
const JobId = Type.String({ format: 'uuid' });

export const ClaimedSchema: TSchema = Type.Object({
  jobs: Type.Array(
    Type.Object(
      {
        job_id: JobId,
        queue: Type.String({ examples: ['mail'] }),
        payload: Type.Unknown({ examples: [{ to: 'alice@example.com' }] }),
        retry_count: Type.Integer(),
        max_retries: Type.Integer({ examples: [3] }),
        epoch: Type.Integer({ examples: [1] }),
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
