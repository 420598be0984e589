import { once } from 'node:events';
import * as http from 'node:http';
import * as https from 'node:https';
import { ApiError, type HttpAnswer, type HttpRequest } from '../../client-http/index.ts';
import { explainLostAnswer, explainUnreachable } from './explain-unreachable.ts';

/** A server that runs accepts connections at once. */
const connectTimeoutMs = 5000;

/**
 * One request on its own connection. If connecting fails, the server has done nothing. A failure after that leaves
 * an action in doubt (not a GET), and the error says so. Rejects with the signal's reason if it aborts.
 */
export async function sendRequest({
  method,
  url,
  headers,
  body,
  timeoutMs,
  maxAnswerBytes,
  signal,
}: HttpRequest): Promise<HttpAnswer> {
  const isTls = url.protocol === 'https:';
  const outgoing = (isTls ? https : http).request(url, { method, agent: false, headers, signal });
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
      header: (name) => headerOf(incoming, name),
      text: await readAll(incoming, maxAnswerBytes),
    };
  } catch (error) {
    if (error instanceof ApiError) throw error;
    signal?.throwIfAborted();
    if (!isConnected) throw new ApiError(explainUnreachable(error, url));
    throw new ApiError(explainLostAnswer(error, url, method), { isInDoubt: method !== 'GET' });
  } finally {
    clearTimeout(timer);
  }
}

/** The answer may come from any server, so its size is limited. */
async function readAll(incoming: http.IncomingMessage, maxBytes: number): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBytes)
      throw new ApiError(`the answer is larger than ${maxBytes} bytes`, { status: incoming.statusCode });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function headerOf(incoming: http.IncomingMessage, name: string): string | null {
  const value = incoming.headers[name];
  return (Array.isArray(value) ? value[0] : value) ?? null;
}
