import { once } from 'node:events';
import * as http from 'node:http';
import * as https from 'node:https';
import { ApiError, type HttpAnswer, type HttpRequest, type Transport } from '../../client-http/index.ts';
import { explainLostAnswer, explainUnreachable } from './explain-unreachable.ts';

/** A server that runs accepts connections at once. */
const connectTimeoutMs = 5000;

/** Takes a part of an answer; the next one is read when this one is settled. */
export type TakeBytes = (bytes: Buffer) => Promise<void>;

/**
 * One request on its own connection. If connecting fails, the server has done nothing. A failure after that leaves
 * an action in doubt (not a GET), and the error says so. Rejects with the signal's reason if it aborts.
 */
export function sendRequest(request: HttpRequest): Promise<HttpAnswer> {
  return exchange(request, ({ incoming }) => readAll(incoming, request.maxAnswerBytes));
}

/** As `sendRequest`, but hands over the body of a success in parts. The time limit is for each of them. */
export function sendForStream(take: TakeBytes): Transport {
  return (request) =>
    exchange(request, ({ incoming, restart }) => {
      const isSuccess = incoming.statusCode === 200;
      return isSuccess ? readParts(incoming, take, restart) : readAll(incoming, request.maxAnswerBytes);
    });
}

type Answering = Readonly<{
  incoming: http.IncomingMessage;
  /** Of the time limit. */
  restart: () => void;
}>;

async function exchange(
  { method, url, headers, body, timeoutMs, signal }: HttpRequest,
  read: (answering: Answering) => Promise<string>,
): Promise<HttpAnswer> {
  const isTls = url.protocol === 'https:';
  const outgoing = (isTls ? https : http).request(url, { method, agent: false, headers, signal });
  const giveUpAfter = (ms: number): NodeJS.Timeout =>
    setTimeout(() => outgoing.destroy(new Error(`timed out after ${ms / 1000} s`)), ms);
  let timer = giveUpAfter(connectTimeoutMs);
  let isConnected = false;
  let isAnswering = false;
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
    isAnswering = true;
    return {
      status: incoming.statusCode ?? 0,
      header: (name) => headerOf(incoming, name),
      text: await read({
        incoming,
        restart() {
          clearTimeout(timer);
          timer = giveUpAfter(timeoutMs);
        },
      }),
    };
  } catch (error) {
    if (error instanceof ApiError) throw error;
    signal?.throwIfAborted();
    if (!isConnected) throw new ApiError(explainUnreachable(error, url));
    throw new ApiError(explainLostAnswer(error, { url, method, isAnswering }), {
      isInDoubt: method !== 'GET',
    });
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

async function readParts(
  incoming: http.IncomingMessage,
  take: TakeBytes,
  restart: () => void,
): Promise<string> {
  for await (const bytes of incoming as AsyncIterable<Buffer>) {
    await take(bytes);
    restart();
  }
  return '';
}

function headerOf(incoming: http.IncomingMessage, name: string): string | null {
  const value = incoming.headers[name];
  return (Array.isArray(value) ? value[0] : value) ?? null;
}
