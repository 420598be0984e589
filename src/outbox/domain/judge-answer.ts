import { canonicalJson, sha256Of } from '../../kernel/canonical-json.ts';
import {
  askedWaitMs,
  describeAnswer,
  readJsonBody,
  type HttpAnswer,
  type JsonBody,
} from '../../kernel/http-answer.ts';
import { cleanText } from '../../kernel/text.ts';
import { findUnsafeInput } from '../../kernel/unsafe-input.ts';
import { fieldText } from './answer-body.ts';
import type { ConflictProfile, HttpSettings } from './destination-settings.ts';
import type { Answer, SendOutcome } from './order.ts';

export type AnswerProfile = Readonly<Pick<HttpSettings, 'response' | 'conflict' | 'outsideIdField'>>;

const MAX_OUTSIDE_ID_BYTES = 200;

/** Stands for the result of an order that the destination had processed before. */
const CONFLICT_DIGEST = 'sha256:from-conflict';

/**
 * What an answer means for the order. Certain are only a 2xx that passes its check, a refusal, and being asked to retry
 * later (429, 503). After anything else the effect may have happened, so the outcome is `unknown`; whether the order
 * can be sent again is decided elsewhere.
 */
export function judgeAnswer(
  answer: HttpAnswer,
  profile: AnswerProfile,
  idempotencyKey: string,
  now: Date,
): SendOutcome {
  const { status } = answer;
  if (status >= 200 && status <= 299) return judgeSuccess(answer, profile, idempotencyKey);
  const detail = describeAnswer(answer);
  const wait = { retryAfterMs: askedWaitMs(answer, now) };
  switch (status) {
    case 401:
    case 403:
      return { end: 'refused', code: 'UNAUTHORIZED', detail };
    case 408:
      return { end: 'unknown', code: 'NETWORK_TIMEOUT', detail, ...wait };
    case 409:
      return judgeConflict(answer, profile, wait);
    case 429:
      return { end: 'limited', detail, ...wait };
    case 503:
      return { end: 'failed', code: 'BROKER_5XX', detail, ...wait };
  }
  if (status >= 300 && status <= 499) return { end: 'refused', code: 'BAD_REQUEST', detail };
  // Also 501, 507, 520 and the like: few of them mean for certain that nothing has happened, and a wrong guess would
  // send the order twice.
  if (status >= 500 && status <= 599) return { end: 'unknown', code: 'BROKER_5XX', detail, ...wait };
  return { end: 'unknown', code: 'UNKNOWN', detail, ...wait };
}

function judgeSuccess(answer: HttpAnswer, profile: AnswerProfile, idempotencyKey: string): SendOutcome {
  const json = answer.isBodyCut ? undefined : readJsonBody(answer.body);
  const flaw = profile.response === 'json' ? flawOf(answer, json, idempotencyKey) : undefined;
  if (flaw !== undefined) return { end: 'unknown', code: 'UNKNOWN', detail: describeAnswer(answer, flaw) };
  const digest = digestOf(answer.body, json);
  return { end: 'sent', answer: keptAnswer(answer.status, digest, json, profile), isConflict: false };
}

/** Why a 2xx does not count: a login page or the answer to another order proves nothing. */
function flawOf(
  { body, isBodyCut }: HttpAnswer,
  json: JsonBody | undefined,
  idempotencyKey: string,
): string | undefined {
  if (isBodyCut) return 'larger than the response limit';
  if (json === undefined) return body.toString('latin1').trim() === '' ? undefined : 'not JSON';
  const key = fieldText(json, 'idempotency_key');
  return key === undefined || key === idempotencyKey ? undefined : 'for another idempotency_key';
}

function judgeConflict(
  answer: HttpAnswer,
  profile: AnswerProfile,
  wait: Readonly<{ retryAfterMs: number | undefined }>,
): SendOutcome {
  const json = answer.isBodyCut ? undefined : readJsonBody(answer.body);
  const detail = describeAnswer(answer);
  switch (meaningOf(answer, json, profile.conflict)) {
    case 'processed':
      return {
        end: 'sent',
        answer: keptAnswer(answer.status, CONFLICT_DIGEST, json, profile),
        isConflict: true,
      };
    case 'running':
      return { end: 'failed', code: 'CONFLICT_RUNNING', detail, ...wait };
    case undefined:
      return { end: 'unknown', code: 'UNKNOWN', detail, ...wait };
  }
}

function meaningOf(
  { headers }: HttpAnswer,
  json: JsonBody | undefined,
  profile: ConflictProfile | undefined,
): 'processed' | 'running' | undefined {
  if (profile === undefined || typeof profile === 'string') return profile;
  const said =
    'header' in profile.in
      ? firstOf(headers[profile.in.header.toLowerCase()])
      : json && fieldText(json, profile.in.field);
  if (said === undefined) return undefined;
  if (profile.processed.includes(said)) return 'processed';
  return profile.running.includes(said) ? 'running' : undefined;
}

function keptAnswer(
  status: number,
  digest: string,
  json: JsonBody | undefined,
  { outsideIdField }: AnswerProfile,
): Answer {
  const id = cleanText((json && fieldText(json, outsideIdField)) ?? '', MAX_OUTSIDE_ID_BYTES);
  return { status, digest, outsideId: id === '' ? null : id };
}

/** JSON is digested in canonical form, so that the same answer in another notation has the same digest. */
function digestOf(body: Buffer, json: JsonBody | undefined): string {
  if (json === undefined || findUnsafeInput(json.value, 'answer') !== null) return sha256Of(body);
  try {
    return sha256Of(canonicalJson(json.value));
  } catch {
    // Some JSON has no canonical form: 1e400.
    return sha256Of(body);
  }
}

function firstOf(header: string | readonly string[] | undefined): string | undefined {
  return typeof header === 'string' ? header : header?.[0];
}
