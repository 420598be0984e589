import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** The pipelined requests of a socket that wait for the response in progress. */
type Pipeline = { waiting: (readonly [IncomingMessage, ServerResponse])[]; isCut: boolean };

/** Maximum of pipelined requests that wait on a connection. It is closed after the last of them. */
const MAX_WAITING = 256;

/** Time for a client to read its last answers before the connection is destroyed. */
const LINGER_MS = 2000;

/**
 * Serves the requests of a connection one after another, each after the client has read the answer before it. Node
 * itself starts all pipelined requests and keeps their answers in memory until the client reads them. While requests
 * wait, nothing is read from the connection. Wraps the handlers that the server has now.
 */
export function serveOneAtATime(server: Server): void {
  const handlers = server.listeners('request') as RequestListener[];
  server.removeAllListeners('request');
  const pipelines = new WeakMap<Socket, Pipeline>();

  const serve = (socket: Socket, request: IncomingMessage, response: ServerResponse): void => {
    response.once('close', () => next(socket));
    for (const handle of handlers) handle.call(server, request, response);
  };

  const next = (socket: Socket): void => {
    const pipeline = pipelines.get(socket);
    if (pipeline === undefined || socket.destroyed) return;
    const first = pipeline.waiting.shift();
    if (first !== undefined) {
      if (!isFull(pipeline)) socket.resume();
      serve(socket, ...first);
    } else if (pipeline.isCut) {
      close(socket);
    } else {
      pipelines.delete(socket);
    }
  };

  server.on('connection', (socket: Socket) => {
    // Node resumes the socket after every request without a body.
    socket.on('resume', () => {
      const pipeline = pipelines.get(socket);
      if (pipeline !== undefined && isFull(pipeline)) socket.pause();
    });
  });

  server.on('request', (request, response) => {
    const { socket } = request;
    const pipeline = pipelines.get(socket);
    if (pipeline === undefined) {
      pipelines.set(socket, { waiting: [], isCut: false });
      serve(socket, request, response);
      return;
    }
    if (pipeline.waiting.length >= MAX_WAITING) pipeline.isCut = true;
    if (!pipeline.isCut) pipeline.waiting.push([request, response]);
    socket.pause();
  });
}

/** Stop reading. After a dropped request nothing more may be served, because answers must stay in order. */
function isFull({ waiting, isCut }: Pipeline): boolean {
  return isCut || waiting.length > 0;
}

/** The socket is paused, so the client's FIN would never be seen. */
function close(socket: Socket): void {
  socket.end();
  const cut = setTimeout(() => socket.destroy(), LINGER_MS);
  socket.once('close', () => clearTimeout(cut));
}
