import { ApiFailure, failureOf } from './api-failure.ts';

/** `text` is the answer as it was sent: a parsed number may have lost digits. */
export type ApiAnswer<T> = Readonly<{ value: T; text: string; etag: string | null }>;

export type FirstBytes = Readonly<{ bytes: Uint8Array<ArrayBuffer>; size: number }>;

export type SendOptions = Readonly<{
  body?: unknown;
  /** In place of `body`: JSON that is sent as it is, so that its numbers keep their digits. */
  bodyText?: string;
  idempotencyKey?: string;
  /** The `etag` with which the item was read. */
  ifMatch?: string;
  signal?: AbortSignal;
}>;

export type Api = Readonly<{
  get<T>(path: string, signal?: AbortSignal): Promise<T>;
  read<T>(path: string, signal?: AbortSignal): Promise<ApiAnswer<T>>;
  send<T>(method: 'POST' | 'PATCH' | 'DELETE', path: string, options?: SendOptions): Promise<ApiAnswer<T>>;
  /** The first bytes of a value, and how many there are in all. */
  readBytes(path: string, limit: number, signal?: AbortSignal): Promise<FirstBytes>;
  /** The path below the prefix, for links and streams. */
  url(path: string): string;
}>;

const timeoutMs = 30_000;

export type ApiOptions = Readonly<{
  fetcher?: typeof fetch;
  /** The server asks who calls: the session has ended, or there was none. */
  onUnauthorized?: () => void;
}>;

const callFetch: typeof fetch = (...args) => fetch(...args);

/** Calls the API of the server that has served the page. Throws `ApiFailure`. */
export function createApi(
  prefix: string,
  { fetcher = callFetch, onUnauthorized = () => {} }: ApiOptions = {},
): Api {
  const ask = async (path: string, init: RequestInit): Promise<Response> => {
    const given = init.signal == null ? [] : [init.signal];
    const signal = AbortSignal.any([...given, AbortSignal.timeout(timeoutMs)]);
    const response = await fetcher(prefix + path, { ...init, signal, credentials: 'same-origin' }).catch(
      (cause: unknown) => {
        if (init.signal?.aborted === true) throw cause;
        throw noAnswer(cause);
      },
    );
    if (response.status === 401) onUnauthorized();
    return response;
  };
  const textOf = (response: Response): Promise<string> =>
    response.text().catch((cause: unknown) => {
      throw noAnswer(cause);
    });
  const call = async <T>(path: string, init: RequestInit): Promise<ApiAnswer<T>> => {
    const response = await ask(path, init);
    const text = await textOf(response);
    if (!response.ok) throw failureOf(response.status, text);
    return { value: parseAnswer(text, response.status) as T, text, etag: response.headers.get('etag') };
  };
  const read = <T>(path: string, signal?: AbortSignal): Promise<ApiAnswer<T>> =>
    call<T>(path, signal === undefined ? {} : { signal });
  return {
    url: (path) => prefix + path,
    read,
    readBytes: async (path, limit, signal) => {
      const headers = { range: `bytes=0-${limit - 1}` };
      const response = await ask(path, signal === undefined ? { headers } : { headers, signal });
      if (!response.ok) throw failureOf(response.status, await textOf(response));
      const bytes = new Uint8Array(
        await response.arrayBuffer().catch((cause: unknown) => {
          throw noAnswer(cause);
        }),
      );
      const size = Number(/\/(\d+)$/.exec(response.headers.get('content-range') ?? '')?.[1] ?? bytes.length);
      return { bytes, size };
    },
    get: async (path, signal) => (await read<never>(path, signal)).value,
    send: (method, path, { body, bodyText, ifMatch, idempotencyKey, signal } = {}) =>
      call(path, {
        method,
        headers: {
          // Browsers send this header only for pages of the same origin.
          'x-redrive-console': '1',
          ...(body === undefined && bodyText === undefined ? {} : { 'content-type': 'application/json' }),
          ...(idempotencyKey === undefined ? {} : { 'idempotency-key': idempotencyKey }),
          ...(ifMatch === undefined ? {} : { 'if-match': ifMatch }),
        },
        ...(bodyText === undefined ? {} : { body: bodyText }),
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        ...(signal === undefined ? {} : { signal }),
      }),
  };
}

/** An answer without content has no value. A proxy may put a page of its own in place of an answer. */
function parseAnswer(text: string, status: number): unknown {
  if (text === '') return undefined;
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new ApiFailure('the answer is not JSON: is there a proxy before the server?', {
      status,
      code: 'NOT_JSON',
      cause,
    });
  }
}

function noAnswer(cause: unknown): ApiFailure {
  const isTimeout = cause instanceof DOMException && cause.name === 'TimeoutError';
  return new ApiFailure(
    isTimeout ? `timed out after ${timeoutMs / 1000} s` : 'the server cannot be reached',
    { status: 0, code: isTimeout ? 'TIMEOUT' : 'UNREACHABLE', cause },
  );
}
