import { messageOf } from '../../kernel/errors.ts';
import { parseExactJson } from '../output/exact-json.ts';
import { ApiError } from './api-error.ts';
import { sendRequest, type HttpAnswer } from './send-request.ts';

export type ApiCall = Readonly<{
  method?: 'GET' | 'POST' | 'DELETE';
  /** Unencoded segments. */
  path: readonly string[];
  query?: Readonly<Record<string, string | undefined>>;
  headers?: Readonly<Record<string, string>>;
  /** A string is JSON and sent unchanged. */
  body?: Readonly<Record<string, unknown>> | string;
  timeoutMs?: number | undefined;
}>;

/** The answer's text, unchanged, and its value. */
export type ApiAnswer<T> = Readonly<{ status: number; text: string; value: T }>;

export type ApiClient = Readonly<{
  /** Throws an ApiError unless the status is 2xx. */
  call<T>(call: ApiCall): Promise<ApiAnswer<T>>;
}>;

/** As database.statement_timeout by default: no answer takes longer. */
const defaultTimeoutMs = 30_000;

export function createApiClient(options: Readonly<{ url: URL; actor: string }>): ApiClient {
  // Node writes headers as Latin-1; this sends the bytes of the name in UTF-8.
  const actor = Buffer.from(options.actor).toString('latin1');
  const headers = { accept: 'application/json', 'x-actor': actor };

  return {
    async call<T>(call: ApiCall): Promise<ApiAnswer<T>> {
      const { method = 'GET', path, query = {}, body, timeoutMs = defaultTimeoutMs } = call;
      const url = new URL(options.url);
      const folder = url.pathname.replace(/\/+$/, '');
      url.pathname = `${folder}/${path.map(encodeURIComponent).join('/')}`;
      for (const [name, value] of Object.entries(query))
        if (value !== undefined) url.searchParams.set(name, value);
      const answer = await sendRequest({
        method,
        url,
        headers: { ...call.headers, ...headers },
        timeoutMs,
        ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      });
      const value = readJson(answer);
      if (answer.status < 200 || answer.status > 299) throw refusal(answer, value);
      if (value === undefined)
        throw new ApiError(
          `${url.origin} is not a Redrive server (no JSON in the answer): check --url or REDRIVE_URL`,
          { status: answer.status },
        );
      return { status: answer.status, text: answer.text, value: value as T };
    },
  };
}

function readJson({ contentType, text }: HttpAnswer): unknown {
  if (!contentType.startsWith('application/json')) return undefined;
  try {
    return parseExactJson(text);
  } catch (error) {
    throw new ApiError(`the answer is not valid JSON: ${messageOf(error)}`);
  }
}

/** The answer may come from any server, so every part may be missing or of any type. */
function refusal({ status, requestId }: HttpAnswer, value: unknown): ApiError {
  const { error } = fieldsOf(value);
  const { code, message, request_id, details } = fieldsOf(error);
  if (typeof message !== 'string')
    return new ApiError(`HTTP ${status}, and the answer is not from Redrive: check --url or REDRIVE_URL`, {
      status,
      requestId,
    });
  const read = (Array.isArray(details) ? details : []).map((detail: unknown) => {
    const { field, reason, message: text } = fieldsOf(detail);
    return { field: textOf(field), reason: textOf(reason), message: textOf(text) };
  });
  return new ApiError(message, {
    status,
    code: typeof code === 'string' ? code : undefined,
    requestId: typeof request_id === 'string' ? request_id : requestId,
    details: read,
    isInDoubt: read.some(({ reason }) => reason === 'in_doubt'),
  });
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Readonly<Record<string, unknown>>) : {};
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}
