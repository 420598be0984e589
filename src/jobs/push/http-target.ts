import { SpanKind, trace } from '@opentelemetry/api';
import { codeOf, messageOf } from '../../kernel/errors.ts';
import { cleanText } from '../../kernel/text.ts';
import { createHttpPool, startCall, type CallEnd } from '../../platform/http-client/http-call.ts';
import { readHeaders, withoutSecrets } from '../../platform/http-client/outgoing-headers.ts';
import { traceparentOf } from '../../platform/telemetry/outgoing-traceparent.ts';
import { contextOf, readTraceContext } from '../../platform/telemetry/trace-context.ts';
import { inSpan } from '../../platform/telemetry/with-span.ts';
import { busy, notRetryable, outage, readSignal, retryAfter } from '../domain/handler-signals.ts';
import { judgePush, maxResultBytes, type PushOutcome } from '../domain/judge-push.ts';
import type { ClaimedJob } from '../claim-jobs.ts';
import type { PushGate } from './push-gate.ts';
import type { PushPace } from './push-pace.ts';

export type TargetSettings = Readonly<{
  url: string;
  headers: Readonly<Record<string, () => string>>;
  tls: Readonly<Record<'ca' | 'cert' | 'key', string | undefined>> | undefined;
  /** Maximum number of parallel calls. */
  connections: number;
  connectTimeoutMs: number;
  timeoutMs: () => number;
}>;

export type HttpTarget = Readonly<{
  /**
   * A job handler, for jobs whose payload was claimed as text: returns the result or a handler signal. Signals are
   * returned, not thrown, because the stack of this process says nothing about the job.
   */
  push(job: ClaimedJob, context: Readonly<{ signal: AbortSignal }>): Promise<unknown>;
  close(): Promise<void>;
}>;

export type HttpTargetDeps = Readonly<{
  pace: PushPace;
  gate: Pick<PushGate, 'noteDown' | 'noteContact'>;
  /** A header cannot be read or sent. That is not the job's fault. */
  onMisconfigured: (why: string) => void;
}>;

const tracer = trace.getTracer('redrive');
const maxDetailBytes = 500;

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
    const withinMs = timeoutMs();
    const startedAtMs = performance.now();
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
      timeoutMs: withinMs,
      maxResponseBytes: maxResultBytes,
      hasOwnConnection: false,
    });
    const abort = (): void => running.abort(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener('abort', abort, { once: true });
    const end = await running.ended;
    signal.removeEventListener('abort', abort);
    const outcome = isTimeout(end) ? timedOut(end, withinMs) : outcomeOf(end, signal);
    const ranMs = (): number => performance.now() - startedAtMs;
    const call = { ...deps, job, ranMs, isAborted: signal.aborted };
    return resultOf(withoutSecretsIn(read.headers, outcome), call);
  };

  return {
    async push(job, { signal }) {
      const attributes = {
        'http.request.method': 'POST',
        'server.address': url.hostname,
        'messaging.destination.name': job.queue,
        'messaging.message.id': job.jobId,
      };
      const parent = contextOf(readTraceContext({ traceparent: job.trace ?? undefined }));
      deps.pace.noteStart();
      try {
        const options = { kind: SpanKind.CLIENT, attributes, parent };
        return await inSpan(tracer, `push ${job.queue}`, options, () => call(job, signal));
      } catch (error) {
        if (readSignal(error) === undefined) throw error;
        return error;
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

type CallOutcome = PushOutcome | Readonly<{ outcome: 'misconfigured'; detail: string }>;

function outcomeOf(call: CallEnd, { aborted: isAborted }: AbortSignal): CallOutcome {
  switch (call.end) {
    case 'answered':
      return judgePush(call.answer, new Date());
    case 'broken': {
      // The status decides, and an incomplete result is dropped. But a call that we aborted has not succeeded.
      const judged = judgePush(call.answer, new Date());
      return judged.outcome === 'done' && isAborted
        ? failed(`HTTP ${call.answer.status}, but an incomplete response: ${describe(call.error)}`)
        : judged;
    }
    case 'lost':
      return failed(`no answer: ${describe(call.error)}`);
    case 'unsent':
      return codeOf(call.error) === 'UND_ERR_INVALID_ARG'
        ? { outcome: 'misconfigured', detail: describe(call.error) }
        : failed(`not sent: ${describe(call.error)}`);
    case 'withdrawn':
      return failed('not sent: the job was cancelled or its lease was lost');
  }
}

function failed(detail: string): PushOutcome {
  return { outcome: 'failed', detail, delayMs: 0, isUnreachable: true };
}

function isTimeout(call: CallEnd): boolean {
  return 'isTimeout' in call && call.isTimeout;
}

/** A slow job may be the cause of a timeout, but not of a connection that cannot be opened. */
function timedOut({ end }: CallEnd, withinMs: number): PushOutcome {
  const isUnreachable = end === 'unsent';
  const detail = isUnreachable ? `no connection within ${withinMs} ms` : `timed out after ${withinMs} ms`;
  return { outcome: 'failed', detail, delayMs: 0, isUnreachable };
}

function describe(error: unknown): string {
  return cleanText(messageOf(error), maxDetailBytes);
}

function withoutSecretsIn(headers: Readonly<Record<string, string>>, outcome: CallOutcome): CallOutcome {
  return 'detail' in outcome ? { ...outcome, detail: withoutSecrets(outcome.detail, headers) } : outcome;
}

type EndedCall = HttpTargetDeps & Readonly<{ job: ClaimedJob; ranMs: () => number; isAborted: boolean }>;

/** The result, or a handler signal that is thrown. */
async function resultOf(call: CallOutcome, deps: EndedCall): Promise<unknown> {
  const { job, gate } = deps;
  if (call.outcome === 'done' || call.outcome === 'refused' || call.outcome === 'busy')
    await gate.noteContact(job, deps.ranMs);
  switch (call.outcome) {
    case 'done':
      return call.result;
    case 'busy':
      deps.pace.noteBusy();
      throw busy(`the target is busy: ${call.detail}`, call.delayMs);
    case 'refused':
      throw notRetryable(call.detail);
    case 'failed': {
      const { detail, delayMs, isUnreachable } = call;
      const isOutage = !deps.isAborted && (await gate.noteDown(job, { reason: detail, isUnreachable }));
      throw isOutage ? outage(`the target is down: ${detail}`, delayMs) : retryAfter(delayMs, detail);
    }
    case 'misconfigured':
      throw misconfigured(call.detail, deps);
  }
}

/** Usually a secret whose file is missing for a moment or contains a line break. The job waits, at no cost. */
function misconfigured(why: string, { onMisconfigured }: HttpTargetDeps): Error {
  onMisconfigured(why);
  return outage(`not sent: ${why}`);
}
