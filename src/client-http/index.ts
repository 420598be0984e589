import { ApiError } from './api-error.ts';
import { buildRequest, factsOf, type BuiltRequest, type Input } from './build-request.ts';
import type { Operations } from './generated/operation-shapes.ts';
import { operations, type OperationId } from './generated/operations.ts';
import { readAnswer, type ParseJson } from './read-answer.ts';
import { fetchTransport, type HttpAnswer, type Transport } from './transport.ts';

export { ApiError, type ErrorDetail } from './api-error.ts';
export type { Operations } from './generated/operation-shapes.ts';
export { operations, type OperationId } from './generated/operations.ts';
export type * from './generated/schemas.ts';
export { JsonText } from './json-text.ts';
export { fetchTransport, type HttpAnswer, type HttpRequest, type Transport } from './transport.ts';

export type ClientOptions = Readonly<{
  /** Of the server; may have a path. */
  url: string | URL;
  /** Who acts, for the audit log. */
  actor?: string;
  /** Sent with every request, such as `authorization`. */
  headers?: Readonly<Record<string, string>>;
  /** For a call with all its attempts. Default: 30 000. */
  timeoutMs?: number;
  /**
   * How often a request is repeated after HTTP 429 or 503 and after a lost connection. Only a GET, and a request with
   * an idempotency key, is ever repeated. Default: 2.
   */
  retries?: number;
  /** Before the first repetition if the server does not say; doubles each time. Default: 200. */
  backoffMs?: number;
  /** Default: 128 MiB. */
  maxAnswerBytes?: number;
  /** Default: the global `fetch`. */
  transport?: Transport;
  parseJson?: ParseJson;
  /** Appended to the error if another server answers. */
  hint?: string;
}>;

export type CallOptions = Readonly<{
  idempotencyKey?: string | undefined;
  /** The `etag` of the answer with which the item was read, for an operation that requires it. */
  ifMatch?: string | undefined;
  timeoutMs?: number | undefined;
  signal?: AbortSignal | undefined;
}>;

/** The answer's text, unchanged, and its value. */
export type Answer<T> = Readonly<{
  status: number;
  text: string;
  value: T;
  requestId: string | undefined;
  /** An earlier request had this idempotency key. */
  isReplayed: boolean;
  /** Of the item, for `ifMatch`. */
  etag: string | undefined;
}>;

type InputOf<Id extends OperationId> = Operations[Id]['input'];
export type AnswerOf<Id extends OperationId> = Operations[Id]['answer'];

/** The input may be left out where no field is required. */
type Arguments<Id extends OperationId> =
  Readonly<Record<string, never>> extends InputOf<Id>
    ? [input?: InputOf<Id>, options?: CallOptions]
    : [input: InputOf<Id>, options?: CallOptions];

type Methods = { readonly [Id in OperationId]: (...args: Arguments<Id>) => Promise<AnswerOf<Id>> };

/** One method per operation of the API. Every method throws an ApiError unless the status is 2xx. */
export type RedriveClient = Methods &
  Readonly<{
    /** The same with the whole answer; the input is not checked by the compiler. */
    call: <T>(id: OperationId, input: Input, options?: CallOptions) => Promise<Answer<T>>;
  }>;

const MAX_BACKOFF_MS = 10_000;
/** Longer timers would fire at once. */
const MAX_TIMER_MS = 2_147_483_647;
const REPEATED_STATUSES: ReadonlySet<number> = new Set([429, 503]);

export function createRedriveClient(options: ClientOptions): RedriveClient {
  const settings = {
    headers: {},
    timeoutMs: 30_000,
    retries: 2,
    backoffMs: 200,
    maxAnswerBytes: 128 * 1024 * 1024,
    transport: fetchTransport(globalThis.fetch),
    parseJson: JSON.parse as ParseJson,
    hint: '',
    ...options,
    base: new URL(options.url),
  };
  const call = async <T>(id: OperationId, input: Input, given: CallOptions = {}): Promise<Answer<T>> => {
    const { base, headers, actor, parseJson, hint } = settings;
    const { idempotencyKey, ifMatch } = given;
    const request = buildRequest(id, input, { base, headers, actor, idempotencyKey, ifMatch });
    const isText = factsOf(id).isText === true;
    return sendRepeatedly(settings, request, given, (answer): Answer<T> => ({
      status: answer.status,
      text: answer.text,
      value: readAnswer(answer, { isText, parseJson, origin: base.origin, hint }) as T,
      requestId: answer.header('x-request-id') ?? undefined,
      isReplayed: answer.header('idempotent-replayed') === 'true',
      etag: answer.header('etag') ?? undefined,
    }));
  };
  const methods = Object.keys(operations).map((id) => [
    id,
    async (input: Input = {}, given?: CallOptions) => (await call(id as OperationId, input, given)).value,
  ]);
  return { ...(Object.fromEntries(methods) as Methods), call };
}

type SendSettings = Readonly<
  Required<Pick<ClientOptions, 'timeoutMs' | 'retries' | 'backoffMs' | 'maxAnswerBytes' | 'transport'>>
>;

/** Sends until there is an answer that counts, the attempts are used up, or the next one would be too late. */
async function sendRepeatedly<T>(
  settings: SendSettings,
  { isRepeatable, ...request }: BuiltRequest,
  { signal, timeoutMs = settings.timeoutMs }: CallOptions,
  read: (answer: HttpAnswer) => T,
): Promise<T> {
  const { maxAnswerBytes, transport, backoffMs } = settings;
  const retries = isRepeatable ? settings.retries : 0;
  const limitMs = Math.min(timeoutMs, MAX_TIMER_MS);
  const endsAt = performance.now() + limitMs;
  for (let attempt = 0; ; attempt += 1) {
    signal?.throwIfAborted();
    try {
      const leftMs = attempt === 0 ? limitMs : Math.max(1, Math.ceil(endsAt - performance.now()));
      return read(await transport({ ...request, timeoutMs: leftMs, maxAnswerBytes, signal }));
    } catch (error) {
      const waitMs = waitBefore(error, backoffMs * 2 ** attempt);
      if (waitMs === null || attempt >= retries || performance.now() + waitMs >= endsAt) throw error;
      await pause(waitMs, signal);
    }
  }
}

/** Null if the error does not pass by itself. */
function waitBefore(error: unknown, backoffMs: number): number | null {
  if (!(error instanceof ApiError)) return null;
  const { status, retryAfterMs } = error;
  if (status !== undefined && !REPEATED_STATUSES.has(status)) return null;
  // Between half and all of it, so that clients do not come back together.
  return retryAfterMs ?? Math.min(backoffMs, MAX_BACKOFF_MS) * (0.5 + Math.random() / 2);
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    signal?.addEventListener('abort', stop, { once: true });
  });
}
