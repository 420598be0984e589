import type { FastifyReply } from 'fastify';
import { AppError } from '../../kernel/errors.ts';
import { formatTimestamp } from '../../kernel/timestamp.ts';
import type { HttpApp } from '../../platform/http/http-app.ts';
import { rawJson } from '../../platform/http/raw-json.ts';
import type { Status } from '../domain/job.ts';
import type { PulledEnd, PulledJob } from '../usecase/acting-ports.ts';
import {
  finishPulledJob,
  giveJobsBack,
  keepPulledJob,
  type FinishDeps,
} from '../usecase/finish-pulled-job.ts';
import type { Puller } from '../usecase/pull-jobs.ts';
import { invalidInput } from './invalid-input.ts';
import { readJobId, readQueueName } from './read-fields.ts';
import { root } from './root.ts';
import * as schemas from './worker-schemas.ts';

export type WorkerRouteDeps = Readonly<{ puller: Puller; finish: FinishDeps }>;

/** For workers in any language: they fetch jobs, and say what became of each. */
export function addWorkerRoutes(app: HttpApp, deps: WorkerRouteDeps): void {
  addClaim(app, deps);
  addFinish(app, deps);

  app.post(
    `${root}/:id/heartbeat`,
    {
      config: { exactJson: true },
      schema: {
        summary: 'Prolong the lease of a job, and tell how far it has come',
        params: schemas.IdParams,
        body: schemas.HeartbeatBody,
        response: { 200: schemas.RenewedSchema },
      },
    },
    async ({ params, body }, reply) => {
      const jobId = readJobId(params.id);
      const { status, leaseUntil } = await keepPulledJob(deps.finish, {
        jobId,
        epoch: BigInt(body.epoch),
        leaseMs: leaseMsOf(body),
        progress: progressOf(body.progress),
      });
      return reply.send({ job_id: jobId, status, lease_until: formatTimestamp(leaseUntil) });
    },
  );
}

function addClaim(app: HttpApp, { puller, finish }: WorkerRouteDeps): void {
  const closing = new AbortController();
  // A request that waits for work is answered when the server stops.
  app.addHook('preClose', async () => closing.abort());

  app.post(
    `${root}/queues/:queue/claim`,
    {
      schema: {
        summary:
          'Fetch jobs that are due, each for a while and under an epoch that is the right to settle it',
        params: schemas.QueueParams,
        body: schemas.ClaimBody,
        response: { 200: schemas.ClaimedSchema },
      },
    },
    async ({ params, body, log }, reply) => {
      const asked = {
        queue: readQueueName(params.queue),
        owner: ownerOf(body.worker),
        limit: body.limit ?? 1,
        leaseMs: leaseMsOf(body),
      };
      const gone = onceGone(reply);
      const signal = AbortSignal.any([closing.signal, gone]);
      const jobs = await puller.pull(asked, { waitMs: (body.wait_seconds ?? 0) * 1000, signal });
      // Nobody would ever say what became of them.
      const giveBack = (): Promise<void> =>
        giveJobsBack(finish, jobs).catch((error: unknown) =>
          log.warn({ err: error }, 'jobs for a client that has gone could not be given back'),
        );
      if (gone.aborted) await giveBack();
      else gone.addEventListener('abort', () => void giveBack(), { once: true });
      return reply.send({ jobs: jobs.map(presentPulled) });
    },
  );
}

function addFinish(app: HttpApp, { finish }: WorkerRouteDeps): void {
  const tell = async (
    reply: FastifyReply,
    { id, epoch }: Readonly<{ id: string; epoch: number }>,
    end: PulledEnd,
  ): Promise<Readonly<{ job_id: string; status: Status }>> => {
    const jobId = readJobId(id);
    const status = await finishPulledJob(finish, { jobId, epoch: BigInt(epoch) }, end);
    return reply.send({ job_id: jobId, status });
  };
  const schemaOf = <Body>(summary: string, body: Body) => ({
    config: { exactJson: true },
    schema: { summary, params: schemas.IdParams, body, response: { 200: schemas.FinishedSchema } },
  });

  app.post(
    `${root}/:id/complete`,
    schemaOf('Say that a job is done, and what came of it', schemas.CompleteBody),
    ({ params, body: { epoch, result } }, reply) =>
      tell(reply, { ...params, epoch }, { end: 'completed', result: jsonOf(result) }),
  );
  app.post(
    `${root}/:id/fail`,
    schemaOf('Say that a job has failed: it is tried again, or is dead', schemas.FailBody),
    ({ params, body }, reply) =>
      tell(
        reply,
        { ...params, epoch: body.epoch },
        {
          end: 'failed',
          error: body.error,
          isRetryable: body.retryable ?? true,
          retryAfterMs: body.retry_after_seconds === undefined ? null : body.retry_after_seconds * 1000,
        },
      ),
  );
  app.post(
    `${root}/:id/release`,
    schemaOf('Give a job back: it costs no retry, but is counted', schemas.ReleaseBody),
    ({ params, body: { epoch } }, reply) => tell(reply, { ...params, epoch }, { end: 'released' }),
  );
}

/** Aborts when the client goes before it has its answer. */
function onceGone({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController();
  raw.once('close', () => {
    if (!raw.writableFinished) gone.abort();
  });
  return gone.signal;
}

const notInNames = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\ufffd\s]+/gu;

/** Names are shown to people, and compared: what no name contains is left out. */
function ownerOf(worker: string): string {
  const name = worker.replace(notInNames, ' ').trim();
  if (name === '') throw invalidInput('worker', 'pattern', 'must not be blank');
  return `pull:${name}`;
}

function leaseMsOf(body: Readonly<{ lease_seconds?: number | undefined }>): number {
  return (body.lease_seconds ?? schemas.defaultLeaseSeconds) * 1000;
}

/** JSON text; null where nothing was sent. */
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
