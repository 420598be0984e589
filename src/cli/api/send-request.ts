import { once } from 'node:events';
import * as http from 'node:http';
import * as https from 'node:https';
import { ApiError } from './api-error.ts';
import { explainLostAnswer, explainUnreachable } from './explain-unreachable.ts';

export type HttpRequest = Readonly<{
  method: 'GET' | 'POST' | 'DELETE';
  url: URL;
  headers: Readonly<Record<string, string>>;
  body?: string;
  timeoutMs: number;
}>;

export type HttpAnswer = Readonly<{
  status: number;
  contentType: string;
  requestId: string | undefined;
  text: string;
}>;

/** A server that runs accepts connections at once. */
const connectTimeoutMs = 5000;

/**
 * One request on its own connection. If connecting fails, the server has done nothing. A failure after that leaves
 * an action in doubt (not a GET), and the error says so.
 */
export async function sendRequest({
  method,
  url,
  headers,
  body,
  timeoutMs,
}: HttpRequest): Promise<HttpAnswer> {
  const isTls = url.protocol === 'https:';
  const outgoing = (isTls ? https : http).request(url, {
    method,
    agent: false,
    headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
  });
  const giveUpAfter = (ms: number): NodeJS.Timeout =>
    setTimeout(() => outgoing.destroy(new Error(`timed out after ${ms / 1000} s`)), ms);
  let timer = giveUpAfter(connectTimeoutMs);
  let isConnected = false;
  outgoing.once('socket', (socket) => {
    socket.once(isTls ? 'secureConnect' : 'connect', () => {
      isConnected = true;
      clearTimeout(timer);
      timer = giveUpAfter(timeoutMs);
    });
  });
  // Errors after the answer has begun are thrown by reading it.
  outgoing.on('error', () => {});
  try {
    // As bytes: with a string Node writes headers and body together in UTF-8, but headers are Latin-1.
    outgoing.end(body === undefined ? undefined : Buffer.from(body));
    const [incoming] = (await once(outgoing, 'response')) as [http.IncomingMessage];
    return {
      status: incoming.statusCode ?? 0,
      contentType: incoming.headers['content-type'] ?? '',
      requestId: headerOf(incoming, 'x-request-id'),
      text: await readAll(incoming),
    };
  } catch (error) {
    if (!isConnected) throw new ApiError(explainUnreachable(error, url));
    throw new ApiError(explainLostAnswer(error, url, method), { isInDoubt: method !== 'GET' });
  } finally {
    clearTimeout(timer);
  }
}

async function readAll(incoming: http.IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString('utf8');
}

function headerOf(incoming: http.IncomingMessage, name: string): string | undefined {
  const value = incoming.headers[name];
  return Array.isArray(value) ? value[0] : value;
}
