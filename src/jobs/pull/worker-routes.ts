import type { FastifyReply } from 'fastify';
import { creatorOf } from '../../kernel/access/principal.ts';
import { AppError } from '../../kernel/errors.ts';
import { formatTimestamp } from '../../kernel/timestamp.ts';
import { scopeOfPath } from '../../platform/http/access/item-scope.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { rawJson } from '../../platform/http/raw-json.ts';
import { invalidField } from '../../platform/http/slice-input.ts';
import type { Status } from '../domain/job.ts';
import { pulledOwnerPrefix } from '../jobs-table.ts';
import { JobParams, jobScope, QueueParams, readJobId, readQueueName, root } from '../route-parts.ts';
import type { PullDeps, PulledJob } from './claim-pulled.ts';
import { finishPulledJob, renewPulledJob, type PulledOutcome } from './finish-pulled-job.ts';
import { giveBack, type Puller } from './pull-jobs.ts';
import * as schemas from './worker-schemas.ts';

export type WorkerRouteDeps = PullDeps & Readonly<{ puller: Puller }>;

/** For workers in any language: they claim jobs and report the outcome of each. */
export function addWorkerRoutes(app: HttpApp, deps: WorkerRouteDeps): void {
  addClaim(app, deps);
  addFinish(app, deps);

  app.post(
    `${root}/:id/heartbeat`,
    {
      config: { access: { permission: 'jobs:jobs:work', scope: jobScope(deps.db) }, exactJson: true },
      schema: {
        operationId: 'heartbeatJob',
        summary: 'Renew the lease of a job',
        description: 'Also stores the progress. 409 means that the lease is lost: stop the work.',
        errors: [404, 409],
        params: JobParams,
        body: schemas.HeartbeatBody,
        response: { 200: schemas.RenewedSchema },
      },
    },
    async ({ params, body }, reply) => {
      const jobId = readJobId(params.id);
      const { status, leaseUntil } = await renewPulledJob(deps, {
        jobId,
        epoch: BigInt(body.epoch),
        leaseMs: leaseMsOf(body),
        progress: progressOf(body.progress),
      });
      return reply.send({ job_id: jobId, status, lease_until: formatTimestamp(leaseUntil) });
    },
  );
}

function addClaim(app: HttpApp, deps: WorkerRouteDeps): void {
  const closing = new AbortController();
  // Ends waiting requests when the server stops.
  app.addHook('preClose', async () => closing.abort());

  app.post(
    `${root}/queues/:queue/claim`,
    {
      config: { access: { permission: 'jobs:jobs:work', scope: scopeOfPath('queues', 'queue') } },
      schema: {
        operationId: 'claimJobs',
        summary: 'Claim due jobs',
        description:
          'Each job comes with a lease and the epoch that settles it. With `wait_seconds` the request waits until a job is due. Jobs of a client that disconnects are released.',
        params: QueueParams,
        body: schemas.ClaimBody,
        response: { 200: schemas.ClaimedSchema },
      },
    },
    async (request, reply) => {
      const { params, body, log } = request;
      const claim = {
        queue: readQueueName(params.queue),
        owner: ownerOf(body.worker),
        claimedBy: creatorOf(request.principal),
        limit: body.limit ?? 1,
        leaseMs: leaseMsOf(body),
      };
      const disconnected = onceDisconnected(reply);
      const signal = AbortSignal.any([closing.signal, disconnected]);
      const jobs = await deps.puller.pull(claim, {
        waitMs: (body.wait_seconds ?? 0) * 1000,
        signal,
        reserve: (bytes) => request.reserveAnswer(bytes),
      });
      const returnJobs = (): Promise<void> =>
        giveBack(deps, claim, jobs).catch((error: unknown) =>
          log.warn({ err: error }, 'failed to give back jobs of a disconnected client'),
        );
      if (disconnected.aborted) await returnJobs();
      else disconnected.addEventListener('abort', () => void returnJobs(), { once: true });
      return reply.send({ jobs: jobs.map(presentPulled) });
    },
  );
}

type Texts = Readonly<{ operationId: string; summary: string; description: string }>;

const texts = {
  complete: {
    operationId: 'completeJob',
    summary: 'Complete a job, with its result',
    description: 'Repeating the request is safe: a job that this epoch completed stays completed.',
  },
  fail: {
    operationId: 'failJob',
    summary: 'Report that a job failed',
    description: 'The job is retried after a backoff, or dead-lettered if no attempt is left.',
  },
  release: {
    operationId: 'releaseJob',
    summary: 'Release a job that was not run',
    description: 'Costs no retry, but counts as a deferral; a job that is released too often fails.',
  },
} as const satisfies Readonly<Record<string, Texts>>;

function addFinish(app: HttpApp, deps: WorkerRouteDeps): void {
  const finish = async (
    reply: FastifyReply,
    { id, epoch }: Readonly<{ id: string; epoch: number }>,
    report: PulledOutcome,
  ): Promise<Readonly<{ job_id: string; status: Status }>> => {
    const jobId = readJobId(id);
    const status = await finishPulledJob(deps, { jobId, epoch: BigInt(epoch) }, report);
    return reply.send({ job_id: jobId, status });
  };
  const schemaOf = <Body>(texts: Texts, body: Body) => ({
    config: { access: { permission: 'jobs:jobs:work', scope: jobScope(deps.db) }, exactJson: true } as const,
    schema: {
      ...texts,
      errors: [404, 409] as const,
      params: JobParams,
      body,
      response: { 200: schemas.FinishedSchema },
    },
  });

  app.post(
    `${root}/:id/complete`,
    schemaOf(texts.complete, schemas.CompleteBody),
    ({ params, body: { epoch, result } }, reply) =>
      finish(reply, { ...params, epoch }, { outcome: 'completed', result: jsonOf(result) }),
  );
  app.post(`${root}/:id/fail`, schemaOf(texts.fail, schemas.FailBody), ({ params, body }, reply) =>
    finish(
      reply,
      { ...params, epoch: body.epoch },
      {
        outcome: 'failed',
        error: body.error,
        origin: { className: body.error_class ?? null, stack: body.stack ?? null },
        isRetryable: body.retryable ?? true,
        retryAfterMs: body.retry_after_seconds === undefined ? null : body.retry_after_seconds * 1000,
      },
    ),
  );
  app.post(
    `${root}/:id/release`,
    schemaOf(texts.release, schemas.ReleaseBody),
    ({ params, body: { epoch } }, reply) => finish(reply, { ...params, epoch }, { outcome: 'released' }),
  );
}

/** Aborts when the client disconnects before it has the response. */
function onceDisconnected({ raw }: FastifyReply): AbortSignal {
  const disconnected = new AbortController();
  raw.once('close', () => {
    if (!raw.writableFinished) disconnected.abort();
  });
  return disconnected.signal;
}

const notInNames = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\ufffd\s]+/gu;

/** Names are displayed and compared, so control characters and repeated blanks are removed. */
function ownerOf(worker: string): string {
  const name = worker.replace(notInNames, ' ').trim();
  if (name === '') throw invalidField('jobs', 'worker', 'pattern', 'must not be blank');
  return `${pulledOwnerPrefix}${name}`;
}

function leaseMsOf(body: Readonly<{ lease_seconds?: number | undefined }>): number {
  return (body.lease_seconds ?? schemas.defaultLeaseSeconds) * 1000;
}

/** JSON text; null if the field was not sent. */
function jsonOf(value: unknown): string | null {
  return value === undefined ? null : JSON.stringify(value);
}

function progressOf(value: unknown): string | null {
  const text = jsonOf(value);
  if (text === null || Buffer.byteLength(text) <= schemas.maxProgressBytes) return text;
  const message = `must not be longer than ${schemas.maxProgressBytes} bytes`;
  throw new AppError('SYS_JOBS_TOO_LARGE', 'too_large', `progress ${message}`, {
    details: [{ field: 'progress', reason: 'max_bytes', message }],
  });
}

function presentPulled(job: PulledJob): object {
  return {
    job_id: job.jobId,
    queue: job.queue,
    payload: rawJson(job.payload),
    retry_count: job.retryCount,
    max_retries: job.maxRetries,
    epoch: job.epoch,
    lease_until: formatTimestamp(job.leaseUntil),
  };
}
