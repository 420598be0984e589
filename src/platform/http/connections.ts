import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** The server's open sockets, each with the answer that is under way on it. */
export type Connections = Readonly<{
  answerOn(socket: Socket): ServerResponse | undefined;
}>;

/**
 * Watches from before the server listens. When the stop begins, sockets that serve no request are closed at
 * once, and later ones as they come: Node by itself waits for those that never sent anything.
 */
export function watchConnections(server: Server, stopping: AbortSignal): Connections {
  const answers = new Map<Socket, ServerResponse | undefined>();
  server.on('connection', (socket: Socket) => {
    if (stopping.aborted) {
      socket.destroy();
      return;
    }
    answers.set(socket, undefined);
    socket.once('close', () => answers.delete(socket));
  });
  server.prependListener('request', (request, response) => {
    answers.set(request.socket, response);
    response.once('close', () => {
      if (answers.get(request.socket) === response) answers.set(request.socket, undefined);
    });
  });
  stopping.addEventListener('abort', () => {
    for (const [socket, answer] of answers) if (answer === undefined) socket.destroy();
  });
  return { answerOn: (socket) => answers.get(socket) };
}
