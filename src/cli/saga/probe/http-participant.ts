import { retryAfterMs } from '../../../kernel/backoff.ts';
import { messageOf } from '../../../kernel/errors.ts';
import type { HttpAnswer } from '../../../kernel/http-answer.ts';
import { createHttpPool, startCall } from '../../../platform/http-client/http-call.ts';
import {
  MAX_ANSWER_BYTES,
  MAX_POLL_MS,
  noAnswer,
  pollUntilEnd,
  sagaHeadersOf,
  unreachable,
  type ParticipantOptions,
  type ProbeCall,
  type ProbedParticipant,
  type ProbeReply,
} from './probed-participant.ts';

export function openHttpParticipant(options: ParticipantOptions): ProbedParticipant {
  const { url, methods, bodies, timeoutMs } = options;
  const pool = createHttpPool({ origin: url.origin, connections: 16, timeoutMs, tls: undefined });
  const send = async (call: ProbeCall): Promise<ProbeReply> => {
    const [method = '', path = ''] = methods[call.op].split(' ');
    const { ended } = startCall(pool, {
      method,
      path: `${url.pathname.replace(/\/$/, '')}${path}`,
      headers: { 'content-type': 'application/json', ...options.headers, ...sagaHeadersOf(call) },
      body: JSON.stringify(call.body === undefined ? bodies[call.op] : call.body),
      timeoutMs,
      maxResponseBytes: MAX_ANSWER_BYTES,
      hasOwnConnection: false,
    });
    const outcome = await ended;
    switch (outcome.end) {
      case 'answered':
        return replyOf(outcome.answer);
      case 'unsent':
        throw unreachable(url, messageOf(outcome.error));
      case 'broken':
      case 'lost':
        return noAnswer(messageOf(outcome.error));
      case 'withdrawn':
        return noAnswer('cancelled');
    }
  };
  return { ask: (call) => pollUntilEnd(() => send(call), timeoutMs), close: () => pool.close() };
}

function replyOf({ status, headers, body }: HttpAnswer): ProbeReply {
  const first = (name: string): string | undefined => [headers[name] ?? []].flat()[0];
  return {
    status,
    label: `HTTP ${status}`,
    text: body.toString('utf8'),
    result: first('saga-result') ?? null,
    retryAfterMs: retryAfterMs(first('retry-after'), new Date(), MAX_POLL_MS) ?? null,
  };
}
