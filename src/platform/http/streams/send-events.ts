import type { Readable } from 'node:stream';
import type { FastifyReply } from 'fastify';

/** Answers with server-sent events, which no cache keeps and no proxy holds back. */
export function sendEvents(reply: FastifyReply, stream: Readable): FastifyReply {
  return reply
    .type('text/event-stream')
    .headers({ 'cache-control': 'no-store', 'x-accel-buffering': 'no' })
    .send(stream);
}
