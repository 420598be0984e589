import type { IncomingMessage, ServerResponse } from 'node:http';
import { replyOf, type GuardReply } from './guard-reply.ts';
import type { Guarded } from './guarded-action.ts';
import { headersOf } from './http-reply.ts';

/** The body is parsed if `express.json()` is used; node:http does not parse it. */
type Request = IncomingMessage & { readonly body?: unknown };

/** A little more than the largest payload of a saga. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;

/**
 * For `app.post(path, expressHandler(guarded))`, and for node:http. It always sends the response itself: an error
 * handler that turns an exception into a 4xx would tell the saga that the call had no effect. It also reads the body
 * itself, so mount it before `express.json()`, which refuses `null`, the body of a saga without a payload, and bodies
 * over 100 kB.
 */
export function expressHandler(guarded: Guarded): (request: Request, response: ServerResponse) => void {
  return (request, response) => {
    answer(guarded, request).then(
      (reply) => send(response, reply),
      // The connection was lost while the body was read: there is nobody to respond to.
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
    // Drains the rest, so that the client reads the response.
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
  // Another middleware has responded meanwhile, such as a timeout: the saga calls again and gets the stored answer.
  if (response.headersSent) return;
  response.writeHead(reply.status, headersOf(reply)).end(reply.body ?? undefined);
}
