import type { HttpApp } from '../http-app.ts';
import { HttpFault } from '../errors/http-fault.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Answers when its work is done, which may take minutes; neither it nor its silent connection times out. */
    takesMinutes?: boolean;
  }
}

/**
 * Answers 503 if a handler has not begun to answer in time. Its work continues, so the outcome is unknown to the caller.
 * Streams have begun; what bounds them is the time without progress of their connection.
 */
export function boundHandlers(app: HttpApp, timeoutMs: number): void {
  app.addHook('onRequest', (request, reply, done) => {
    if (request.routeOptions.config.takesMinutes === true) {
      request.raw.socket.setTimeout(0);
      done();
      return;
    }
    const cut = setTimeout(() => {
      if (!reply.sent && !reply.raw.headersSent) reply.send(timedOut(timeoutMs));
    }, timeoutMs);
    reply.raw.once('close', () => clearTimeout(cut));
    done();
  });
}

function timedOut(timeoutMs: number): HttpFault {
  const message = `timed out after ${timeoutMs} ms; the request may still take effect`;
  return new HttpFault(503, message, { headers: { 'retry-after': '5' } });
}
