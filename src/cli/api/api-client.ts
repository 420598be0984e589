import { messageOf } from '../../kernel/errors.ts';
import { parseExactJson } from '../output/exact-json.ts';
import { ApiError, type ApiErrorFacts } from './api-error.ts';
import { sendRequest, type HttpAnswer } from './send-request.ts';

export type ApiCall = Readonly<{
  method?: 'GET' | 'POST' | 'DELETE';
  /** Below the client's root, each as it is called: they are encoded here. */
  path: readonly string[];
  query?: Readonly<Record<string, string | undefined>>;
  headers?: Readonly<Record<string, string>>;
  /** A text is JSON already and goes out as it is. */
  body?: Readonly<Record<string, unknown>> | string;
  timeoutMs?: number;
}>;

/** The answer as it came, for programs, and as values, for people. */
export type ApiAnswer<T> = Readonly<{ status: number; text: string; value: T }>;

export type ApiClient = Readonly<{
  /** Throws an ApiError for every answer that is not a good one. */
  call<T>(call: ApiCall): Promise<ApiAnswer<T>>;
}>;

const defaultTimeoutMs = 30_000;

export function createApiClient(
  options: Readonly<{ url: URL; root: readonly string[]; actor: string }>,
): ApiClient {
  const { root, actor } = options;
  // Header bytes are Latin-1 to Node; as such it sends the bytes of the name's UTF-8.
  const headers = { accept: 'application/json', 'x-actor': Buffer.from(actor).toString('latin1') };

  return {
    async call<T>(call: ApiCall): Promise<ApiAnswer<T>> {
      const { method = 'GET', path, query = {}, body, timeoutMs = defaultTimeoutMs } = call;
      const url = new URL(options.url);
      const folder = url.pathname.replace(/\/+$/, '');
      url.pathname = `${folder}/${[...root, ...path].map(encodeURIComponent).join('/')}`;
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
          `${url.origin} answered with something that is not Redrive's API: check --url or REDRIVE_URL`,
          {
            status: answer.status,
          },
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
    throw new ApiError(`the answer is no JSON: ${messageOf(error)}`);
  }
}

type ErrorAnswer = Readonly<{
  error?: Readonly<{
    code?: string;
    message?: string;
    request_id?: string;
    details?: ApiErrorFacts['details'];
  }>;
}>;

function refusal({ status, requestId }: HttpAnswer, value: unknown): ApiError {
  const { error } = (value ?? {}) as ErrorAnswer;
  if (error?.message === undefined)
    return new ApiError(`the answer is HTTP ${status}, and not from Redrive: check --url or REDRIVE_URL`, {
      status,
      requestId,
    });
  return new ApiError(error.message, {
    status,
    code: error.code,
    requestId: error.request_id ?? requestId,
    details: error.details ?? [],
    isInDoubt: error.details?.some(({ reason }) => reason === 'in_doubt') ?? false,
  });
}
