import { messageOf } from '../../../kernel/errors.ts';
import { sleep, systemClock, type Clock } from '../../../kernel/clock.ts';
import { backoffMs, type Backoff } from '../../../kernel/backoff.ts';
import { readJsonBody, type HttpAnswer } from '../../../kernel/http-answer.ts';
import { cleanText } from '../../../kernel/text.ts';
import { fieldText } from '../../domain/answer-body.ts';
import type { HttpSettings, StatusProfile } from '../../domain/destination-settings.ts';
import { judgeAnswer } from '../../domain/judge-answer.ts';
import type { StatusAnswer } from './port.ts';
import { createHttpPool, startCall, type CallEnd } from '../../../platform/http-client/http-call.ts';
import { readHeaders, withoutSecrets } from '../../../platform/http-client/outgoing-headers.ts';

export type StatusQuestion = Readonly<{
  ask(idempotencyKey: string): Promise<StatusAnswer>;
  close(): Promise<void>;
}>;

export type StatusQuestionOptions = Readonly<{ backoff?: Backoff; clock?: Clock }>;

const ATTEMPTS = 3;
const MAX_DETAIL_BYTES = 500;
const defaultBackoff: Backoff = { initialMs: 200, maxMs: 1000, jitter: 0.2 };

/**
 * Asks a destination whether an order has had its effect, up to three times within its timeout. Only a clear answer
 * counts: `absent` allows the order to be sent again, so anything that is not understood is `silent`.
 */
export function createStatusQuestion(
  settings: HttpSettings & Readonly<{ statusUrl: string }>,
  { backoff = defaultBackoff, clock = systemClock }: StatusQuestionOptions = {},
): StatusQuestion {
  const pool = createHttpPool({
    origin: originOf(settings.statusUrl),
    connections: settings.maxInFlight,
    timeoutMs: settings.timeoutMs,
    tls: settings.tls,
  });

  const askOnce = async (idempotencyKey: string, timeoutMs: number): Promise<StatusAnswer> => {
    const read = readHeaders(settings.headers);
    if ('unreadable' in read) return { known: 'silent', detail: read.unreadable };
    const url = new URL(addressOf(settings.statusUrl, idempotencyKey));
    const call = startCall(pool, {
      method: 'GET',
      path: `${url.pathname}${url.search}`,
      headers: read.headers,
      timeoutMs,
      maxResponseBytes: settings.maxResponseBytes,
      hasOwnConnection: true,
    });
    const answer = readCall(await call.ended, settings, idempotencyKey);
    return answer.known === 'silent'
      ? { ...answer, detail: withoutSecrets(answer.detail, read.headers) }
      : answer;
  };

  const ask = async (idempotencyKey: string): Promise<StatusAnswer> => {
    const endsAtMs = clock.monotonicMs() + settings.timeoutMs;
    for (let attempt = 1; ; attempt++) {
      const answer = await askOnce(idempotencyKey, Math.ceil(endsAtMs - clock.monotonicMs()));
      if (answer.known !== 'silent' || attempt === ATTEMPTS) return answer;
      const pauseMs = backoffMs(backoff, attempt);
      if (clock.monotonicMs() + pauseMs >= endsAtMs) return answer;
      await sleep(pauseMs);
    }
  };

  return {
    ask: (idempotencyKey) =>
      ask(idempotencyKey).catch((error: unknown) => ({ known: 'silent', detail: messageOf(error) })),
    close: () => pool.close(),
  };
}

function addressOf(statusUrl: string, idempotencyKey: string): string {
  return statusUrl.replaceAll('{key}', encodeURIComponent(idempotencyKey));
}

/** The idempotency key comes from a caller, who must not choose the host that gets our credentials. */
function originOf(statusUrl: string): string {
  const { origin } = new URL(addressOf(statusUrl, 'one'));
  if (origin !== new URL(addressOf(statusUrl, 'two')).origin)
    throw new Error(`status_url: {key} is allowed in the path and the query only: ${statusUrl}`);
  return origin;
}

function readCall(call: CallEnd, settings: HttpSettings, idempotencyKey: string): StatusAnswer {
  switch (call.end) {
    case 'answered':
      return readAnswer(call.answer, settings, idempotencyKey);
    case 'broken':
    case 'lost':
    case 'unsent':
      return { known: 'silent', detail: cleanText(messageOf(call.error), MAX_DETAIL_BYTES) };
    case 'withdrawn':
      return { known: 'silent', detail: 'the status request was cancelled' };
  }
}

function readAnswer(answer: HttpAnswer, settings: HttpSettings, idempotencyKey: string): StatusAnswer {
  const { status } = answer;
  // The same check as for a send: a login page or the status of another order proves nothing.
  const outcome = judgeAnswer(answer, settings, idempotencyKey, new Date());
  const isProof = outcome.end === 'sent' && !outcome.isConflict;
  const meaning =
    settings.status === undefined ? meaningOfCode(status) : meaningOfField(answer, settings.status);
  if (meaning === 'done' && isProof) return { known: 'done', outcome };
  if (meaning === 'absent' && (isProof || status === 404)) return { known: 'absent' };
  return { known: 'silent', detail: 'detail' in outcome ? outcome.detail : `HTTP ${status}` };
}

function meaningOfCode(status: number): 'done' | 'absent' | undefined {
  if (status === 404) return 'absent';
  return status >= 200 && status <= 299 ? 'done' : undefined;
}

function meaningOfField({ body }: HttpAnswer, profile: StatusProfile): 'done' | 'absent' | undefined {
  const json = readJsonBody(body);
  const value = json && fieldText(json, profile.field);
  if (value === undefined) return undefined;
  if (profile.done.includes(value)) return 'done';
  return profile.absent.includes(value) ? 'absent' : undefined;
}
