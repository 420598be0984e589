import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { createByteBudget, type ByteBudget, type Share } from '../../../kernel/byte-budget.ts';
import type { HttpApp } from '../http-app.ts';
import { HttpFault } from '../errors/http-fault.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Maximum size of a large answer; reserved before the handler runs. */
    answerBytes?: number;
  }
  interface FastifyRequest {
    /**
     * Reserves memory for an answer whose size only the handler knows. Throws 503 if none is free in time, 413 if it is
     * above the maximum. Replaces an earlier reservation; released when the client has read the answer.
     */
    reserveAnswer(bytes: number): Promise<void>;
  }
}

export type MemoryOptions = Readonly<{
  /** For all answers that clients have not read yet; bodies have half as much in addition. */
  bytes: number;
  /** How long a request waits for memory before it is rejected. */
  waitMs: number;
  /** Time to read an answer, plus its size at this rate. Slower clients are disconnected: others need the memory. */
  readMs: number;
  readBytesPerMs: number;
}>;

const MAX_WAITING = 500;
const MAX_ANSWER_BYTES = 64 * 1024 * 1024;
const RETRY_AFTER_S = 1;
/** Fits into the socket buffers. */
const SMALL_BYTES = 64 * 1024;

/** The memory of one request, until its client has read the answer. */
type Reserved = {
  answer: Share | null;
  body: Share | null;
  cut: NodeJS.Timeout | undefined;
  isOver: boolean;
};

/**
 * Bounds the memory of request bodies and answers. An answer waits a moment for memory and is then rejected with 503; a
 * body is rejected immediately, because it is already arriving. Bodies and answers have separate budgets, so that slow
 * downloads do not block workers that settle jobs. Small bodies and answers, such as those of workers and probes, are
 * not counted.
 */
export function boundMemory(app: HttpApp, options: MemoryOptions): void {
  const budget = createByteBudget({ ...options, maxWaiting: MAX_WAITING });
  const bodies = createByteBudget({ ...options, bytes: options.bytes / 2, maxWaiting: 0 });
  const reservedBy = new WeakMap<FastifyRequest, Reserved>();

  app.decorateRequest('reserveAnswer', async function reserve(this: FastifyRequest, bytes: number) {
    const reserved = reservedBy.get(this);
    if (reserved === undefined) return;
    reserved.answer?.release();
    reserved.answer = null;
    if (bytes <= SMALL_BYTES) return;
    if (bytes > MAX_ANSWER_BYTES) throw tooLarge(bytes);
    const answer = await budget.reserve(bytes);
    if (answer === null) throw busy();
    // The client may have disconnected meanwhile.
    if (reserved.isOver) answer.release();
    else reserved.answer = answer;
  });

  app.addHook('onRequest', async (request, reply) => {
    const reserved: Reserved = { answer: null, body: null, cut: undefined, isOver: false };
    reservedBy.set(request, reserved);
    reply.raw.once('close', () => {
      reserved.isOver = true;
      reserved.answer?.release();
      reserved.body?.release();
      clearTimeout(reserved.cut);
    });
    const { answerBytes } = request.routeOptions.config;
    if (answerBytes !== undefined) await request.reserveAnswer(answerBytes);
  });

  app.addHook('preParsing', (request, _reply, payload, done) => {
    const reserved = reservedBy.get(request);
    if (reserved !== undefined && hasBody(request.raw)) reserved.body = countBody(bodies, request.raw);
    done(null, payload);
  });

  app.addHook('onSend', (request, reply, payload, done) => {
    const reserved = reservedBy.get(request);
    // After a disconnect nothing would release the memory.
    if (reserved !== undefined && !reserved.isOver) {
      const bytes = countAnswer(budget, reserved, payload);
      const withinMs = options.readMs + Math.ceil(bytes / options.readBytesPerMs);
      if (bytes > 0) reserved.cut = setTimeout(() => reply.raw.destroy(), withinMs);
    }
    done(null, payload);
  });
}

function hasBody({ method, headers }: IncomingMessage): boolean {
  const mayHaveOne = method !== 'GET' && method !== 'HEAD';
  return mayHaveOne && (headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > 0);
}

/** Counts received bytes, not content-length: a client must not block others by announcing a large body. */
function countBody(budget: ByteBudget, request: IncomingMessage): Share {
  const share = budget.take(0);
  let received = 0;
  const count = (chunk: Buffer): void => {
    received += chunk.length;
    if (received <= SMALL_BYTES || share.resize(received) || request.listenerCount('error') === 0) return;
    request.off('data', count);
    // The body parser stops and answers with this error.
    request.emit('error', busy());
  };
  request.on('data', count);
  return share;
}

/** The size of the answer; 0 if it is small. */
function countAnswer(budget: ByteBudget, reserved: Reserved, payload: unknown): number {
  const bytes = typeof payload === 'string' || Buffer.isBuffer(payload) ? payload.length : 0;
  if (bytes <= SMALL_BYTES) {
    reserved.answer?.release();
    reserved.answer = null;
    return 0;
  }
  if (reserved.answer === null) reserved.answer = budget.take(bytes);
  else reserved.answer.resize(bytes);
  return bytes;
}

function tooLarge(bytes: number): HttpFault {
  const message = `the answer would have about ${Math.ceil(bytes)} bytes, the limit is ${MAX_ANSWER_BYTES}: read it from the database`;
  return new HttpFault(413, message);
}

function busy(): HttpFault {
  return new HttpFault(503, 'the server is busy with other large requests; try again', {
    headers: { 'retry-after': String(RETRY_AFTER_S) },
  });
}
