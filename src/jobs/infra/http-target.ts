import { context, trace } from '@opentelemetry/api';
import { codeOf, messageOf } from '../../kernel/errors.ts';
import { cleanText } from '../../kernel/text.ts';
import { createHttpPool, startCall, type CallEnd } from '../../platform/http-client/http-call.ts';
import { readHeaders, withoutSecrets } from '../../platform/http-client/outgoing-headers.ts';
import { traceparentOf } from '../../platform/telemetry/outgoing-traceparent.ts';
import { contextOf, readTraceContext } from '../../platform/telemetry/trace-context.ts';
import { withSpan } from '../../platform/telemetry/tracing.ts';
import { busy, notRetryable, retryAfter } from '../domain/handler-signals.ts';
import { judgePush, maxResultBytes, type PushOutcome } from '../domain/judge-push.ts';
import type { JobContext } from '../usecase/job-run.ts';
import type { ClaimedJob } from '../usecase/ports.ts';
import type { PushPace } from '../usecase/push-pace.ts';

export type TargetSettings = Readonly<{
  url: string;
  headers: Readonly<Record<string, () => string>>;
  tls: Readonly<Record<'ca' | 'cert' | 'key', string | undefined>> | undefined;
  /** How many calls at once. */
  connections: number;
  connectTimeoutMs: number;
  timeoutMs: () => number;
}>;

export type HttpTarget = Readonly<{
  /** A handler of jobs claimed with their payload as text: returns the result, or throws what became of it. */
  push(job: ClaimedJob, run: Pick<JobContext, 'signal'>): Promise<unknown>;
  close(): Promise<void>;
}>;

export type HttpTargetDeps = Readonly<{
  pace: PushPace;
  /** A header that cannot be read or sent: a person has to look, and the job is innocent. */
  onMisconfigured: (why: string) => void;
}>;

const tracer = trace.getTracer('redrive');
const maxDetailBytes = 500;

/**
 * Whoever runs the handler ends it at the timeout and aborts its signal; this is how much later a call ends by itself,
 * should nobody have done so.
 */
const backstopMs = 5000;

export function createHttpTarget(settings: TargetSettings, deps: HttpTargetDeps): HttpTarget {
  const { timeoutMs } = settings;
  const url = new URL(settings.url);
  const pool = createHttpPool({
    origin: url.origin,
    connections: settings.connections,
    timeoutMs: settings.connectTimeoutMs,
    tls: settings.tls,
  });

  const call = async (job: ClaimedJob, signal: AbortSignal): Promise<unknown> => {
    const read = readHeaders(settings.headers);
    if ('unreadable' in read) throw misconfigured(read.unreadable, deps);
    const traceparent = traceparentOf(job.trace);
    const running = startCall(pool, {
      method: 'POST',
      path: `${url.pathname}${url.search}`,
      headers: {
        ...read.headers,
        'content-type': 'application/json',
        'idempotency-key': job.jobId,
        ...(traceparent === undefined ? {} : { traceparent }),
      },
      body: bodyOf(job),
      timeoutMs: timeoutMs() + backstopMs,
      maxResponseBytes: maxResultBytes,
      hasOwnConnection: false,
    });
    const abort = (): void => running.abort(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    const end = await running.ended;
    signal.removeEventListener('abort', abort);
    return resultOf(withoutSecretsIn(read.headers, outcomeOf(end, signal)), deps);
  };

  return {
    async push(job, { signal }) {
      const attributes = { slice: 'jobs', queue: job.queue, 'job.id': job.jobId };
      const parent = contextOf(readTraceContext({ traceparent: job.trace ?? undefined }));
      deps.pace.noteStart();
      try {
        return await context.with(parent, () =>
          withSpan(tracer, 'push', attributes, () => call(job, signal)),
        );
      } finally {
        deps.pace.noteEnd();
      }
    },
    close: () => pool.destroy(),
  };
}

function bodyOf({ jobId, queue, payload, retryCount, lease }: ClaimedJob): string {
  const name = `"job_id":${JSON.stringify(jobId)},"queue":${JSON.stringify(queue)}`;
  return `{${name},"payload":${payload as string},"attempt":${retryCount + 1},"epoch":${lease.epoch}}`;
}

type CallOutcome = PushOutcome | Readonly<{ end: 'misconfigured'; detail: string }>;

function outcomeOf(call: CallEnd, { aborted: isOurs }: AbortSignal): CallOutcome {
  switch (call.end) {
    case 'answered':
      return judgePush(call.answer, new Date());
    case 'broken': {
      // The status has said it all, and half of a result is none. But what takes longer than it may is not done.
      const outcome = judgePush(call.answer, new Date());
      return outcome.end === 'done' && isOurs
        ? failed(`HTTP ${call.answer.status}, but no end of the answer: ${describe(call.error)}`)
        : outcome;
    }
    case 'lost':
      return failed(`no answer: ${describe(call.error)}`);
    case 'unsent':
      return codeOf(call.error) === 'UND_ERR_INVALID_ARG'
        ? { end: 'misconfigured', detail: describe(call.error) }
        : failed(`not sent: ${describe(call.error)}`);
    case 'withdrawn':
      return failed('not sent: the job was taken away');
  }
}

function failed(detail: string): PushOutcome {
  return { end: 'failed', detail, delayMs: 0 };
}

function describe(error: unknown): string {
  return cleanText(messageOf(error), maxDetailBytes);
}

function withoutSecretsIn(headers: Readonly<Record<string, string>>, outcome: CallOutcome): CallOutcome {
  return 'detail' in outcome ? { ...outcome, detail: withoutSecrets(outcome.detail, headers) } : outcome;
}

/** In the words of a handler. */
function resultOf(outcome: CallOutcome, deps: HttpTargetDeps): unknown {
  switch (outcome.end) {
    case 'done':
      return outcome.result;
    case 'busy':
      deps.pace.noteBusy();
      throw busy(`the target is busy: ${outcome.detail}`, outcome.delayMs);
    case 'refused':
      throw notRetryable(outcome.detail);
    case 'failed':
      throw retryAfter(outcome.delayMs, outcome.detail);
    case 'misconfigured':
      throw misconfigured(outcome.detail, deps);
  }
}

/** Most often a secret whose file is away for a moment, or has a line break in it. The job waits, at no cost. */
function misconfigured(why: string, { onMisconfigured }: HttpTargetDeps): Error {
  onMisconfigured(why);
  return busy(`not sent: ${why}`);
}
