import { setTimeout as wait } from 'node:timers/promises';
import { retryAfterMs } from '../../../kernel/backoff.ts';
import { AppError, messageOf } from '../../../kernel/errors.ts';
import type { HttpAnswer } from '../../../kernel/http-answer.ts';
import { createHttpPool, startCall, type HttpCall } from '../../../platform/http-client/http-call.ts';

/** One call of a saga to the participant under test. */
export type ProbeCall = Readonly<{
  sagaId: string;
  op: 'action' | 'undo';
  step?: string;
  attempt?: number;
  /** The sample body by default. */
  body?: unknown;
  /** When it may begin at the latest; in five minutes by default. */
  deadline?: Date;
  /** When its saga began; a moment ago by default. */
  startedAt?: Date;
  /** Headers that are left out. */
  without?: readonly string[];
}>;

/** An answer that came; `status` 0 is none. */
export type ProbeReply = Readonly<{
  status: number;
  text: string;
  /** The header saga-result. */
  result: string | null;
  retryAfterMs: number | null;
}>;

export type ProbedParticipant = Readonly<{
  send(call: ProbeCall): Promise<ProbeReply>;
  /** As a saga does it: what answers 202 is asked again, until it answers otherwise. */
  ask(call: ProbeCall): Promise<ProbeReply>;
  close(): Promise<void>;
}>;

export type Endpoint = Readonly<{ method: HttpCall['method']; path: string; body: unknown }>;

export type ParticipantOptions = Readonly<{
  url: URL;
  action: Endpoint;
  undo: Endpoint;
  headers: Readonly<Record<string, string>>;
  timeoutMs: number;
}>;

const STEP = 'redrive-probe';
const BEGINS_WITHIN_MS = 300_000;
const MAX_ANSWER_BYTES = 262_144;
const POLL_MS = 200;
const MAX_POLL_MS = 5000;

export function openParticipant(options: ParticipantOptions): ProbedParticipant {
  const { url, timeoutMs } = options;
  const pool = createHttpPool({ origin: url.origin, connections: 16, timeoutMs, tls: undefined });
  const send = async (call: ProbeCall): Promise<ProbeReply> => {
    const endpoint = options[call.op];
    const { ended } = startCall(pool, {
      method: endpoint.method,
      path: `${url.pathname.replace(/\/$/, '')}${endpoint.path}`,
      headers: { 'content-type': 'application/json', ...options.headers, ...headersOf(call) },
      body: JSON.stringify(call.body === undefined ? endpoint.body : call.body),
      timeoutMs,
      maxResponseBytes: MAX_ANSWER_BYTES,
      hasOwnConnection: false,
    });
    const end = await ended;
    switch (end.end) {
      case 'answered':
        return replyOf(end.answer);
      case 'unsent':
        throw new AppError(
          'SYS_SAGA_PARTICIPANT_UNREACHABLE',
          'unavailable',
          `the participant at ${url.origin} cannot be reached: ${messageOf(end.error)}`,
        );
      case 'broken':
      case 'lost':
        return { status: 0, text: messageOf(end.error), result: null, retryAfterMs: null };
      case 'withdrawn':
        return { status: 0, text: 'it was taken back', result: null, retryAfterMs: null };
    }
  };
  return {
    send,
    async ask(call) {
      const endsAtMs = performance.now() + timeoutMs;
      for (;;) {
        const reply = await send(call);
        if (reply.status !== 202 || performance.now() >= endsAtMs) return reply;
        await wait(Math.min(reply.retryAfterMs ?? POLL_MS, MAX_POLL_MS));
      }
    },
    close: () => pool.close(),
  };
}

/** As a saga sends them. */
function headersOf(call: ProbeCall): Readonly<Record<string, string>> {
  const { sagaId, step = STEP, attempt = 1 } = call;
  const now = Date.now();
  const op = call.op === 'action' ? 'action' : 'compensate';
  const headers = {
    'saga-id': sagaId,
    'saga-step': step,
    'saga-op': op,
    'saga-attempt': String(attempt),
    'saga-epoch': '1',
    'idempotency-key': `${sagaId}:${step}:${op}`,
    'saga-started-at': (call.startedAt ?? new Date(now - 1000)).toISOString(),
    'saga-deadline': (call.deadline ?? new Date(now + BEGINS_WITHIN_MS)).toISOString(),
  };
  return Object.fromEntries(
    Object.entries(headers).filter(([name]) => call.without?.includes(name) !== true),
  );
}

function replyOf({ status, headers, body }: HttpAnswer): ProbeReply {
  const first = (name: string): string | undefined => [headers[name] ?? []].flat()[0];
  return {
    status,
    text: body.toString('utf8'),
    result: first('saga-result') ?? null,
    retryAfterMs: retryAfterMs(first('retry-after'), new Date(), MAX_POLL_MS) ?? null,
  };
}
