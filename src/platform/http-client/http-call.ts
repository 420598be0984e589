import { Pool, type Dispatcher } from 'undici';
import type { HttpAnswer } from '../../kernel/http-answer.ts';

/**
 * How one HTTP call ended, told by what may have left this machine:
 *
 *   unsent     not a byte of the request: no connection, no TLS, or the request cannot be written at all
 *   withdrawn  the same, because the caller no longer wanted it
 *   lost       it may have been sent, and no answer began
 *   broken     an answer began and did not end; `answer` is as much of it as came
 *   answered   an answer came; of its body as much as was asked for
 */
export type CallEnd =
  | Readonly<{ end: 'answered'; answer: HttpAnswer }>
  | Readonly<{ end: 'broken'; answer: HttpAnswer; error: unknown }>
  | Readonly<{ end: 'lost'; error: unknown }>
  | Readonly<{ end: 'unsent'; error: unknown }>
  | Readonly<{ end: 'withdrawn' }>;

export type HttpCall = Readonly<{
  method: Dispatcher.HttpMethod;
  /** With the query. */
  path: string;
  headers: Readonly<Record<string, string>>;
  body?: string;
  /** Over everything: waiting for a connection, connecting, the head and the body. */
  timeoutMs: number;
  maxResponseBytes: number;
  /** Not on a connection that was used before, and nobody uses it afterwards. */
  hasOwnConnection: boolean;
  /** Asked when there is a connection, right before the first byte leaves. */
  mayBegin?: () => boolean;
}>;

export type RunningCall = Readonly<{
  /** Never rejects. */
  ended: Promise<CallEnd>;
  /** Takes it back if nothing of it was sent, else does nothing. */
  withdraw(): void;
  /** Takes it back, or breaks it off wherever it is. */
  abort(why: unknown): void;
}>;

export type PoolOptions = Readonly<{
  origin: string;
  connections: number;
  timeoutMs: number;
  /** In PEM; what is left out is as Node.js has it. */
  tls: Readonly<{ ca?: string | undefined; cert?: string | undefined; key?: string | undefined }> | undefined;
}>;

/**
 * HTTP/1.1 only, one request at a time on a connection: then one broken connection puts one call in doubt, and the
 * library never sends a request again by itself, as it may on HTTP/2. Timeouts are the call's own.
 */
export function createHttpPool({ origin, connections, timeoutMs, tls }: PoolOptions): Pool {
  return new Pool(origin, {
    connections,
    pipelining: 1,
    allowH2: false,
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { ...tls, timeout: timeoutMs },
  });
}

/**
 * Whether bytes may have left is not read from an error's code, for many codes come before and after: the library
 * calls `onRequestStart` on a connection that stands, right before it writes to it.
 */
export function startCall(pool: Pool, call: HttpCall): RunningCall {
  const { promise, resolve } = Promise.withResolvers<CallEnd>();
  const received = createReceiver(call.maxResponseBytes);
  let writing: Dispatcher.DispatchController | undefined;
  let isOver = false;
  const finish = (end: CallEnd): void => {
    if (isOver) return;
    isOver = true;
    clearTimeout(timer);
    resolve(end);
  };
  const fail = (error: unknown): void => {
    const answer = received.answer();
    if (answer !== undefined) finish({ end: 'broken', answer: { ...answer, isBodyCut: true }, error });
    else finish({ end: writing === undefined ? 'unsent' : 'lost', error });
  };
  const breakOff = (error: Error): void => {
    fail(error);
    writing?.abort(error);
  };
  const giveUp = (): void => {
    const what = writing === undefined ? 'no connection' : 'no complete answer';
    breakOff(new Error(`${what} within ${call.timeoutMs} ms`));
  };
  const endsAtMs = performance.now() + call.timeoutMs;
  const timer = setTimeout(giveUp, call.timeoutMs);

  pool.dispatch(
    {
      method: call.method,
      path: call.path,
      headers: call.headers,
      body: call.body ?? null,
      reset: call.hasOwnConnection,
    },
    {
      onRequestStart: (controller) => {
        // A process that was suspended hears of its connection before it hears of its timers. By then somebody else
        // may have the work, so it is the clock that decides whether a byte may still leave.
        if (performance.now() >= endsAtMs) giveUp();
        else if (call.mayBegin?.() === false) fail(new Error('it may not begin any more'));
        if (isOver) controller.abort(new Error('given up before it was sent'));
        else writing = controller;
      },
      onResponseStart: (_controller, status, headers) => received.begin(status, headers),
      onResponseData: (controller, chunk) => {
        if (received.take(chunk)) return;
        const answer = received.answer();
        if (answer !== undefined) finish({ end: 'answered', answer });
        controller.abort(new Error('more of the answer than is read'));
      },
      onResponseEnd: () => {
        const answer = received.answer();
        if (answer === undefined) fail(new Error('the answer has no head'));
        else finish({ end: 'answered', answer });
      },
      onResponseError: (_controller, error) => fail(error),
    },
  );
  const withdraw = (): void => {
    if (writing === undefined) finish({ end: 'withdrawn' });
  };
  return {
    ended: promise,
    withdraw,
    abort: (why) => {
      withdraw();
      if (!isOver) breakOff(new Error('the call was broken off', { cause: why }));
    },
  };
}

type Receiver = Readonly<{
  begin(status: number, headers: HttpAnswer['headers']): void;
  /** False when there is more than is wanted. */
  take(chunk: Buffer): boolean;
  /** What has come so far; undefined before the head. */
  answer(): HttpAnswer | undefined;
}>;

function createReceiver(maxBytes: number): Receiver {
  let head: Readonly<{ status: number; headers: HttpAnswer['headers'] }> | undefined;
  let isBodyCut = false;
  let size = 0;
  const chunks: Buffer[] = [];
  return {
    begin(status, headers) {
      // An informational answer (103) precedes the real one.
      if (status >= 200) head = { status, headers };
    },
    take(chunk) {
      const room = maxBytes - size;
      isBodyCut = chunk.length > room;
      chunks.push(isBodyCut ? chunk.subarray(0, room) : chunk);
      size += Math.min(chunk.length, room);
      return !isBodyCut;
    },
    answer: () => head && { ...head, body: Buffer.concat(chunks), isBodyCut },
  };
}
