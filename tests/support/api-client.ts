import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';

/** Talks to a running system over HTTP, and keeps the answer as it was sent. */
export type Answer<Body = unknown> = Readonly<{
  status: number;
  headers: Headers;
  text: string;
  /** The parsed body, typed by what the test knows about the route. */
  body: Body;
}>;

export type ApiClient = Readonly<{
  get<Body = unknown>(path: string, headers?: Readonly<Record<string, string>>): Promise<Answer<Body>>;
  post<Body = unknown>(
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<Answer<Body>>;
  delete<Body = unknown>(path: string, headers?: Readonly<Record<string, string>>): Promise<Answer<Body>>;
  /** The path and the body go out byte for byte, without the tidying that URL and JSON would do. */
  raw(request: RawRequest): Promise<Answer>;
}>;

export type RawRequest = Readonly<{
  method: string;
  path: string;
  headers?: Readonly<Record<string, string>>;
  body?: string | Buffer;
  /** Enough of an answer that may never end, such as a stream of events: the connection is then closed. */
  until?: RegExp;
}>;

export type ErrorBody = Readonly<{
  error: Readonly<{
    code: string;
    message: string;
    request_id: string;
    details: readonly Readonly<{ field: string; reason: string; message: string }>[];
  }>;
  current?: Readonly<Record<string, unknown>>;
}>;

/** The headers, such as a token, go with every request but the raw ones. */
export function createApiClient(baseUrl: string, always: Readonly<Record<string, string>> = {}): ApiClient {
  const send = async <Body>(path: string, init: RequestInit): Promise<Answer<Body>> => {
    const headers = { ...always, ...(init.headers as Record<string, string> | undefined) };
    const response = await fetch(`${baseUrl}${path}`, { ...init, headers });
    return answerOf<Body>(response.status, response.headers, await response.text());
  };
  return {
    get: (path, headers = {}) => send(path, { headers }),
    post: (path, body, headers = {}) =>
      send(path, {
        method: 'POST',
        headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    delete: (path, headers = {}) => send(path, { method: 'DELETE', headers }),
    raw: (request) => sendRaw(baseUrl, request),
  };
}

function sendRaw(baseUrl: string, { method, path, headers, body, until }: RawRequest): Promise<Answer> {
  const { hostname, port } = new URL(baseUrl);
  // Node frames a body by itself only for the methods that usually have one.
  const framing = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) };
  return new Promise((resolve, reject) => {
    const options = { hostname, port, method, path, headers: { ...headers, ...framing } };
    const request = httpRequest(options, (response) => {
      const chunks: Buffer[] = [];
      const textSoFar = (): string => Buffer.concat(chunks).toString('utf8');
      const end = (): void => {
        const entries = Object.entries(response.headers).map(([name, value]) => [name, String(value)]);
        resolve(answerOf(response.statusCode ?? 0, new Headers(Object.fromEntries(entries)), textSoFar()));
      };
      response.on('data', (chunk: Buffer) => {
        chunks.push(chunk);
        if (until?.test(textSoFar()) !== true) return;
        end();
        request.destroy();
      });
      response.on('error', reject);
      response.on('end', end);
    });
    request.on('error', reject);
    request.end(body);
  });
}

function answerOf<Body>(status: number, headers: Headers, text: string): Answer<Body> {
  const isJson = headers.get('content-type')?.startsWith('application/json') === true && text !== '';
  return { status, headers, text, body: (isJson ? JSON.parse(text) : undefined) as Body };
}

/** An answer in the one form that every error has, with this status and code. */
export function assertError(answer: Answer, status: number, code?: string): ErrorBody['error'] {
  assert.equal(answer.status, status, answer.text);
  const { error } = answer.body as ErrorBody;
  const hasCurrent = 'current' in (answer.body as ErrorBody);
  assert.ok(!hasCurrent || status === 409 || status === 412, answer.text);
  assert.deepEqual(Object.keys(answer.body as ErrorBody), hasCurrent ? ['error', 'current'] : ['error']);
  assert.deepEqual(Object.keys(error), ['code', 'message', 'request_id', 'details']);
  assert.equal(error.request_id, answer.headers.get('x-request-id'));
  assert.match(error.code, /^SYS_[A-Z]+_[A-Z_]+$/);
  if (code !== undefined) assert.equal(error.code, code);
  for (const detail of error.details) assert.deepEqual(Object.keys(detail), ['field', 'reason', 'message']);
  return error;
}

/** The statuses of answers whose order does not matter, in ascending order. */
export function sortedStatuses(answers: readonly Answer[]): readonly number[] {
  return answers.map(({ status }) => status).sort((a, b) => a - b);
}
