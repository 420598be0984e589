import type { IncomingMessage, ServerResponse } from 'node:http';
import { replyOf, type GuardReply } from './guard-reply.ts';
import type { Guarded } from './guarded-action.ts';
import { headersOf } from './http-reply.ts';

/** Express has parsed the body where `express.json()` is used; node:http has not. */
type Request = IncomingMessage & { readonly body?: unknown };

/** As large as a saga's payload can be, and then some. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;

/**
 * For `app.post(path, expressHandler(guarded))`, and as it is for node:http. It always answers by itself: an error
 * handler that turns a fault into a 4xx would tell the saga that nothing has happened, and that nothing will. It reads
 * the body by itself too, so it is best mounted before `express.json()`, which refuses `null`, the body of a saga
 * without a payload, and what is larger than 100 kB.
 */
export function expressHandler(guarded: Guarded): (request: Request, response: ServerResponse) => void {
  return (request, response) => {
    answer(guarded, request).then(
      (reply) => send(response, reply),
      // The connection broke off while the body was read; nobody is there to be answered.
      () => void response.destroy(),
    );
  };
}

async function answer(guarded: Guarded, request: Request): Promise<GuardReply> {
  const { headers } = request;
  if (request.body !== undefined || request.readableEnded) return guarded({ headers, body: request.body });
  const text = await readText(request);
  if (text === null) return replyOf('bad-request', 'the body is too large or not UTF-8');
  if (text.trim() === '') return guarded({ headers, body: null });
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return replyOf('bad-request', 'the body is not JSON');
  }
  return guarded({ headers, body });
}

async function readText(request: Request): Promise<string | null> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    size += chunk.length;
    // The rest is read and forgotten, so that the answer can be heard.
    if (size <= MAX_BODY_BYTES) chunks.push(chunk);
  }
  if (size > MAX_BODY_BYTES) return null;
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.concat(chunks));
  } catch {
    return null;
  }
}

function send(response: ServerResponse, reply: GuardReply): void {
  // Somebody before us has answered meanwhile, such as a timeout: the saga asks again, and gets what is stored.
  if (response.headersSent) return;
  response.writeHead(reply.status, headersOf(reply)).end(reply.body ?? undefined);
}
