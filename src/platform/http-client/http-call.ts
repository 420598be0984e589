import { Pool, type Dispatcher } from 'undici';
import type { HttpAnswer } from '../../kernel/http-answer.ts';

/**
 * How an HTTP call ended, by what may have been sent:
 *
 *   unsent     no byte was sent: no connection, no TLS, or the request is invalid
 *   withdrawn  no byte was sent, because the caller withdrew the call
 *   lost       it may have been sent, and no answer began
 *   broken     an answer began but did not end; `answer` has the part that arrived
 *   answered   an answer arrived, its body up to `maxResponseBytes`
 */
export type CallEnd =
  | Readonly<{ end: 'answered'; answer: HttpAnswer }>
  | (Readonly<{ end: 'broken'; answer: HttpAnswer }> & Fault)
  | (Readonly<{ end: 'lost' | 'unsent' }> & Fault)
  | Readonly<{ end: 'withdrawn' }>;

/** `isTimeout`: the call's own timeout. */
type Fault = Readonly<{ error: unknown; isTimeout: boolean }>;

export type HttpCall = Readonly<{
  method: Dispatcher.HttpMethod;
  /** With the query. */
  path: string;
  headers: Readonly<Record<string, string>>;
  body?: string;
  /** For the whole call: waiting for a connection, connecting, head and body. */
  timeoutMs: number;
  maxResponseBytes: number;
  /** On a new connection, which is closed afterwards. */
  hasOwnConnection: boolean;
  /** Asked when the connection is open, right before the first byte is sent. */
  mayBegin?: () => boolean;
}>;

export type RunningCall = Readonly<{
  /** Never rejects. */
  ended: Promise<CallEnd>;
  /** Ends the call if nothing was sent, else does nothing. */
  withdraw(): void;
  /** Ends the call, and closes its connection if something was sent. */
  abort(why: unknown): void;
}>;

export type PoolOptions = Readonly<{
  origin: string;
  connections: number;
  timeoutMs: number;
  /** PEM; defaults are those of Node.js. */
  tls: Readonly<{ ca?: string | undefined; cert?: string | undefined; key?: string | undefined }> | undefined;
}>;

/**
 * HTTP/1.1 without pipelining: a broken connection leaves one call in doubt, and the library never resends a request, as
 * it may on HTTP/2. The calls have their own timeouts.
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

export function startCall(pool: Pool, call: HttpCall): RunningCall {
  const state = createCallState(call);
  const { method, path, headers, body = null, hasOwnConnection: reset } = call;
  pool.dispatch({ method, path, headers, body, reset }, handlersOf(call, state));
  return {
    ended: state.ended,
    withdraw: state.withdraw,
    abort: (why) => {
      state.withdraw();
      state.breakOff(new Error('the call was aborted', { cause: why }));
    },
  };
}

/** Timers count whole milliseconds and may fire early by one. A call that began with less left could only end in doubt. */
const leastTimeMs = 2;

type CallState = Readonly<{
  ended: Promise<CallEnd>;
  received: Receiver;
  isOver(): boolean;
  isExpired(): boolean;
  /** From here on bytes may have left. */
  setWriting(controller: Dispatcher.DispatchController): void;
  finish(end: CallEnd): void;
  fail(error: unknown): void;
  /** Fails the call, and closes its connection if it has one. */
  breakOff(error: Error): void;
  timeOut(): void;
  withdraw(): void;
}>;

/** How far the call is. Only its first end counts. */
function createCallState({ timeoutMs, maxResponseBytes }: HttpCall): CallState {
  const { promise: ended, resolve } = Promise.withResolvers<CallEnd>();
  const received = createReceiver(maxResponseBytes);
  const endsAtMs = performance.now() + timeoutMs;
  let writing: Dispatcher.DispatchController | undefined;
  let isOver = false;
  const finish = (end: CallEnd): void => {
    if (isOver) return;
    isOver = true;
    clearTimeout(timer);
    resolve(end);
  };
  const fail = (error: unknown, isTimeout = false): void => {
    const answer = received.answer();
    if (answer !== undefined)
      finish({ end: 'broken', answer: { ...answer, isBodyCut: true }, error, isTimeout });
    else finish({ end: writing === undefined ? 'unsent' : 'lost', error, isTimeout });
  };
  const breakOff = (error: Error, isTimeout = false): void => {
    if (isOver) return;
    fail(error, isTimeout);
    writing?.abort(error);
  };
  const timeOut = (): void => {
    const what = writing === undefined ? 'no connection' : 'no complete answer';
    breakOff(new Error(`${what} within ${timeoutMs} ms`), true);
  };
  const timer = setTimeout(timeOut, timeoutMs);
  return {
    ended,
    received,
    isOver: () => isOver,
    isExpired: () => performance.now() >= endsAtMs - leastTimeMs,
    setWriting: (controller) => void (writing = controller),
    finish,
    fail: (error) => fail(error),
    breakOff: (error) => breakOff(error),
    timeOut,
    withdraw: () => {
      if (writing === undefined) finish({ end: 'withdrawn' });
    },
  };
}

/**
 * Error codes do not tell whether bytes may have left, because many of them occur before and after. But the library
 * calls `onRequestStart` with an open connection, right before it writes the request.
 */
function handlersOf({ mayBegin }: HttpCall, state: CallState): Dispatcher.DispatchHandler {
  const { received } = state;
  return {
    onRequestStart: (controller) => {
      // A process that was suspended gets its connection before its timers fire. Somebody else may have the work by
      // then, so the clock decides whether the request may still be sent.
      if (state.isExpired()) state.timeOut();
      else if (mayBegin?.() === false) state.fail(new Error('the call may not begin any more'));
      if (state.isOver()) controller.abort(new Error('ended before it was sent'));
      else state.setWriting(controller);
    },
    onResponseStart: (_controller, status, headers) => received.begin(status, headers),
    onResponseData: (controller, chunk) => {
      if (received.take(chunk)) return;
      const answer = received.answer();
      if (answer !== undefined) state.finish({ end: 'answered', answer });
      controller.abort(new Error('the answer is longer than the limit'));
    },
    onResponseEnd: () => {
      const answer = received.answer();
      if (answer === undefined) state.fail(new Error('the answer has no head'));
      else state.finish({ end: 'answered', answer });
    },
    onResponseError: (_controller, error) => state.fail(error),
  };
}

type Receiver = Readonly<{
  begin(status: number, headers: HttpAnswer['headers']): void;
  /** False if the body exceeds the limit. */
  take(chunk: Buffer): boolean;
  /** What has arrived so far; undefined before the head. */
  answer(): HttpAnswer | undefined;
}>;

/**
 * Copies the body into one buffer, which doubles when it is full. A chunk is a slice of the socket's read buffer and
 * would keep all of it alive: 64 KiB for one byte if the server sends tiny chunks.
 */
function createReceiver(maxBytes: number): Receiver {
  let head: Readonly<{ status: number; headers: HttpAnswer['headers'] }> | undefined;
  let isBodyCut = false;
  let body = Buffer.alloc(0);
  let size = 0;
  const append = (bytes: Buffer): void => {
    const needed = size + bytes.length;
    if (needed > body.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(needed, Math.min(maxBytes, 2 * body.length)));
      body.copy(larger, 0, 0, size);
      body = larger;
    }
    size += bytes.copy(body, size);
  };
  return {
    begin(status, headers) {
      // An informational answer (103) precedes the real one.
      if (status >= 200) head = { status, headers };
    },
    take(chunk) {
      const room = maxBytes - size;
      isBodyCut = chunk.length > room;
      append(isBodyCut ? chunk.subarray(0, room) : chunk);
      return !isBodyCut;
    },
    answer: () => head && { ...head, body: body.subarray(0, size), isBodyCut },
  };
}
