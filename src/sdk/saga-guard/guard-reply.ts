import { writeJson } from '../write-json.ts';
import type { StoredAnswer } from './decide-guarded-call.ts';

/** The header or trailer `saga-result` of answers that the guard makes itself. */
export type SagaResult =
  | 'working'
  | 'already-compensated'
  | 'mismatch'
  | 'too-late'
  | 'forgotten'
  | 'bad-request'
  | 'failed';

/** The response, in terms of HTTP; `body` is JSON text, null if empty. */
export type GuardReply = StoredAnswer &
  Readonly<{ result: SagaResult | null; retryAfterSecs: number | null }>;

/** The saga does not read larger responses and would be in doubt. */
const MAX_ANSWER_BYTES = 262_144;

/**
 * A handler's refusal, thrown or returned: what the handler has written is rolled back, the refusal is stored, and the
 * saga undoes its earlier steps.
 */
export class SagaRefusal extends Error {
  readonly body: unknown;
  readonly status: 409 | 422;

  constructor(body: unknown, status: 409 | 422) {
    super('the call is refused');
    this.name = 'SagaRefusal';
    this.body = body;
    this.status = status;
  }
}

/** `throw refuse({ reason: 'out of stock' })`. Over gRPC 409 is ABORTED and 422 is FAILED_PRECONDITION. */
export function refuse(body: unknown = null, status: 409 | 422 = 409): SagaRefusal {
  return new SagaRefusal(body, status);
}

/** Serializes what a handler returned; throws before anything commits if it cannot be stored. */
export function answerOf(value: unknown): StoredAnswer {
  if (value === undefined) return emptySuccess;
  return { status: 200, body: textOf('the answer', value) };
}

export function answerOfRefusal({ status, body }: SagaRefusal): StoredAnswer {
  return { status, body: textOf('the refusal', body) };
}

function textOf(what: string, value: unknown): string {
  const written = writeJson(what, value);
  if ('reason' in written) throw new TypeError(written.reason);
  if (Buffer.byteLength(written.text) > MAX_ANSWER_BYTES)
    throw new TypeError(`${what} is larger than ${MAX_ANSWER_BYTES} bytes of JSON`);
  return written.text;
}

export const emptySuccess: StoredAnswer = { status: 204, body: null };

export function replyWith(answer: StoredAnswer): GuardReply {
  return { ...answer, result: null, retryAfterSecs: null };
}

const statuses = {
  working: 202,
  'already-compensated': 409,
  mismatch: 422,
  'too-late': 408,
  forgotten: 410,
  'bad-request': 400,
  failed: 500,
} as const satisfies Readonly<Record<SagaResult, number>>;

const messages: Readonly<Record<Exclude<SagaResult, 'bad-request'>, string>> = {
  working: 'it has begun and has not ended: ask again',
  'already-compensated': 'this step has been undone, so it is not done any more',
  mismatch: 'this step was asked for before, with another body',
  'too-late': 'this call may no longer begin: its saga-deadline is over',
  forgotten: 'the saga is older than what is kept here, so nobody can tell whether this was done',
  failed: 'the call failed and was rolled back',
};

/** An answer that the guard makes itself. */
export function replyOf(result: SagaResult, message?: string): GuardReply {
  const said = message ?? (result === 'bad-request' ? 'the call is not readable' : messages[result]);
  const code = `SAGA_${result.replaceAll('-', '_').toUpperCase()}`;
  return {
    status: statuses[result],
    body: JSON.stringify({ error: { code, message: said } }),
    result,
    retryAfterSecs: result === 'working' ? 1 : null,
  };
}
