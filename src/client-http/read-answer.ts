import { ApiError } from './api-error.ts';
import type { HttpAnswer } from './transport.ts';

export type ParseJson = (text: string) => unknown;

export type ReadOptions = Readonly<{
  isText: boolean;
  parseJson: ParseJson;
  origin: string;
  /** Appended to an error about an answer that is not from Redrive. */
  hint: string;
}>;

/** The value of an answer. Throws an ApiError unless the status is 2xx. */
export function readAnswer(answer: HttpAnswer, { isText, parseJson, origin, hint }: ReadOptions): unknown {
  const { status, text } = answer;
  const isSuccess = status >= 200 && status <= 299;
  if (isSuccess && isText) return text;
  const value = readJson(answer, parseJson);
  if (!isSuccess) throw refusal(answer, value, hint);
  if (value === undefined)
    throw new ApiError(`${origin} is not a Redrive server (no JSON in the answer)${hint}`, { status });
  return value;
}

function readJson({ header, text }: HttpAnswer, parseJson: ParseJson): unknown {
  if (header('content-type')?.startsWith('application/json') !== true) return undefined;
  try {
    return parseJson(text);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new ApiError(`the answer is not valid JSON: ${why}`, { cause: error });
  }
}

/** The answer may come from any server, so every part may be missing or of any type. */
function refusal({ status, header }: HttpAnswer, value: unknown, hint: string): ApiError {
  const { error, current } = fieldsOf(value);
  const { code, message, request_id, details } = fieldsOf(error);
  const requestId = typeof request_id === 'string' ? request_id : (header('x-request-id') ?? undefined);
  const retryAfterMs = readRetryAfter(header('retry-after'));
  if (typeof message !== 'string')
    return new ApiError(`HTTP ${status}, and the answer is not from Redrive${hint}`, {
      status,
      requestId,
      retryAfterMs,
    });
  const read = (Array.isArray(details) ? details : []).map((detail: unknown) => {
    const { field, reason, message: text } = fieldsOf(detail);
    return { field: textOf(field), reason: textOf(reason), message: textOf(text) };
  });
  return new ApiError(message, {
    status,
    code: typeof code === 'string' ? code : undefined,
    requestId,
    details: read,
    isInDoubt: read.some(({ reason }) => reason === 'in_doubt'),
    retryAfterMs,
    current: current === undefined ? undefined : fieldsOf(current),
  });
}

/** Seconds, or a date, as a proxy may send it. */
function readRetryAfter(text: string | null): number | undefined {
  if (text === null) return undefined;
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
