import { askedWaitMs, describeAnswer, readJsonBody, type HttpAnswer } from '../../kernel/http-answer.ts';
import { findUnsafeInput } from '../../kernel/unsafe-input.ts';

/** What an answer says about the job that was pushed. */
export type PushOutcome =
  /** `result` is undefined where the answer has none. */
  | Readonly<{ end: 'done'; result: unknown }>
  /** Nothing is wrong with the job: it comes again, and all others more slowly. */
  | Readonly<{ end: 'busy'; detail: string; delayMs: number }>
  /** It will be no better the next time. */
  | Readonly<{ end: 'refused'; detail: string }>
  | Readonly<{ end: 'failed'; detail: string; delayMs: number }>;

/** Larger answers are no results. */
export const maxResultBytes = 65_536;

export function judgePush(answer: HttpAnswer, now: Date): PushOutcome {
  const { status } = answer;
  if (status >= 200 && status <= 299) return { end: 'done', result: resultOf(answer) };
  const delayMs = askedWaitMs(answer, now) ?? 0;
  if (status === 429 || status === 503) return { end: 'busy', detail: describeAnswer(answer), delayMs };
  if (status >= 300 && status <= 399)
    return { end: 'refused', detail: describeAnswer(answer, 'a redirect, which is not followed') };
  if (status >= 400 && status <= 499) return { end: 'refused', detail: describeAnswer(answer) };
  return { end: 'failed', detail: describeAnswer(answer), delayMs };
}

/** The body if it is JSON, as it can be stored: what is nested without a sensible end is none. */
function resultOf({ body, isBodyCut }: HttpAnswer): unknown {
  const json = isBodyCut || body.length > maxResultBytes ? undefined : readJsonBody(body);
  if (json === undefined) return undefined;
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

/** As JSON is written here, only NUL, other control characters and lone surrogates have an escape with their number. */
const unstorable = /(?<!\\)((?:\\\\)*)\\u(?:0000|d[89a-f][\da-f]{2})/g;

function withStorableText(value: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(value).replace(unstorable, '$1\uFFFD'));
  } catch {
    // Nested so deeply that it can be read, but not written.
    return undefined;
  }
}
