import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** The open sockets of the server, each with its response in progress. */
export type Connections = Readonly<{
  answerOn(socket: Socket): ServerResponse | undefined;
}>;

/**
 * When the stop begins, closes idle sockets immediately and new ones as they arrive. Node itself would wait for sockets
 * that never sent anything.
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
