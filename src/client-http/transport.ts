import { ApiError } from './api-error.ts';

export type HttpRequest = Readonly<{
  method: string;
  url: URL;
  headers: Readonly<Record<string, string>>;
  body?: string;
  timeoutMs: number;
  maxAnswerBytes: number;
  signal?: AbortSignal | undefined;
}>;

export type HttpAnswer = Readonly<{
  status: number;
  /** Null if the answer has no such header. */
  header: (name: string) => string | null;
  text: string;
}>;

/** Sends one request. Throws an ApiError if there is no answer; rejects with the signal's reason if it aborts. */
export type Transport = (request: HttpRequest) => Promise<HttpAnswer>;

/** The transport of the platform's `fetch`, or of one with its form. */
export function fetchTransport(fetch: typeof globalThis.fetch): Transport {
  return async ({ method, url, headers, body, timeoutMs, maxAnswerBytes, signal }) => {
    const timeout = AbortSignal.timeout(timeoutMs);
    try {
      const response = await fetch(url, {
        method,
        headers,
        // A redirect of a proxy must not turn a POST into a GET.
        redirect: 'manual',
        signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
        ...(body === undefined ? {} : { body }),
      });
      const text = await readText(response, maxAnswerBytes);
      return { status: response.status, header: (name) => response.headers.get(name), text };
    } catch (error) {
      if (error instanceof ApiError) throw error;
      signal?.throwIfAborted();
      const why = timeout.aborted ? `timed out after ${timeoutMs} ms` : reasonOf(error);
      throw new ApiError(`no answer from ${url.origin}: ${why}`, {
        isInDoubt: method !== 'GET',
        cause: error,
      });
    }
  };
}

/** The text of an answer, which may come from any server: read only up to the limit. */
async function readText(response: Response, maxBytes: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = '';
  let bytes = 0;
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += chunk.byteLength;
    if (bytes > maxBytes)
      throw new ApiError(`the answer is larger than ${maxBytes} bytes`, { status: response.status });
    text += decoder.decode(chunk, { stream: true });
  }
  return text + decoder.decode();
}

/** `fetch` only says that it failed; its cause says why. */
function reasonOf(error: unknown): string {
  const { cause } = error as Readonly<{ cause?: unknown }>;
  const { message = '', code } = (cause ?? error) as Readonly<{ message?: string; code?: string }>;
  return message === '' ? String(code ?? error) : message;
}
