import { askedWaitMs, describeAnswer, readJsonBody, type HttpAnswer } from '../../kernel/http-answer.ts';
import { jsonExtent } from '../../kernel/json-extent.ts';
import { findUnsafeInput, MAX_DEPTH } from '../../kernel/unsafe-input.ts';

/** The outcome of a push, by the target's response. */
export type PushOutcome =
  /** `result` is undefined if the response has none. */
  | Readonly<{ outcome: 'done'; result: unknown }>
  /** The target is busy: the job is deferred, and the queue is throttled. */
  | Readonly<{ outcome: 'busy'; detail: string; delayMs: number }>
  /** Not retryable. */
  | Readonly<{ outcome: 'refused'; detail: string }>
  /** `isUnreachable`: the target itself did not answer, so that the job cannot be the cause. */
  | Readonly<{ outcome: 'failed'; detail: string; delayMs: number; isUnreachable: boolean }>;

/** Larger results are not stored. */
export const maxResultBytes = 65_536;

export function judgePush(answer: HttpAnswer, now: Date): PushOutcome {
  const { status } = answer;
  if (status >= 200 && status <= 299) return { outcome: 'done', result: resultOf(answer) };
  const delayMs = askedWaitMs(answer, now) ?? 0;
  if (status === 429 || status === 503) return { outcome: 'busy', detail: describeAnswer(answer), delayMs };
  if (status >= 300 && status <= 399)
    return { outcome: 'refused', detail: describeAnswer(answer, 'redirects are not followed') };
  if (status >= 400 && status <= 499) return { outcome: 'refused', detail: describeAnswer(answer) };
  return { outcome: 'failed', detail: describeAnswer(answer), delayMs, isUnreachable: isFromGateway(status) };
}

/** The status of a proxy that got no response. */
function isFromGateway(status: number): boolean {
  return status === 502 || status === 504;
}

/** The body if it is JSON that can be stored; undefined if it is not, or is nested too deeply. */
function resultOf({ body, isBodyCut }: HttpAnswer): unknown {
  const json = isBodyCut || body.length > maxResultBytes ? undefined : readJsonBody(body);
  // As PostgreSQL returns it, with every number written out.
  if (json === undefined || jsonExtent(json.text, MAX_DEPTH).bytes > maxResultBytes) return undefined;
  switch (findUnsafeInput(json.value, 'result')?.reason) {
    case undefined:
    case 'forbidden_key':
      return json.value;
    case 'unstorable_text': {
      const clean = withStorableText(json.value);
      return findUnsafeInput(clean, 'result')?.reason === 'max_depth' ? undefined : clean;
    }
    default:
      return undefined;
  }
}

/** JSON.stringify writes \u escapes only for control characters, NUL among them, and lone surrogates. */
const unstorable = /(?<!\\)((?:\\\\)*)\\u(?:0000|d[89a-f][\da-f]{2})/g;

function withStorableText(value: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(value).replace(unstorable, '$1\uFFFD'));
  } catch {
    // Nested too deeply to be written, though it could be read.
    return undefined;
  }
}
