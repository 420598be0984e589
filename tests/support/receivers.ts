import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SMTPServer } from 'smtp-server';

/** Those who are told: a real HTTP server and a real mail server on loopback. */
export type HookReceiver = Readonly<{
  url: string;
  /** What was taken, in the order in which it came. */
  received: readonly ReceivedHook[];
  /** What it answers from now on; only what it answers with 2xx counts as received. */
  answerWith(status: number, body?: string): void;
  /** Nobody listens any more. */
  goAway(): Promise<void>;
  comeBack(): Promise<void>;
}>;

export type ReceivedHook = Readonly<{ headers: IncomingHttpHeaders; bytes: Buffer }>;

export async function startHookReceiver(path = '/hook'): Promise<HookReceiver> {
  const received: ReceivedHook[] = [];
  let answer = { status: 200, body: 'ok' };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      if (answer.status < 300) received.push({ headers: request.headers, bytes: Buffer.concat(chunks) });
      response.writeHead(answer.status, { 'content-type': 'text/plain' }).end(answer.body);
    });
  });
  const listen = async (port: number): Promise<void> => {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
  };
  await listen(0);
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}${path}`,
    received,
    answerWith: (status, body = '') => void (answer = { status, body }),
    async goAway() {
      if (!server.listening) return;
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
    comeBack: () => listen(port),
  };
}

export type MailReceiver = Readonly<{
  port: number;
  /** Whole mails, headers and text. */
  received: readonly string[];
  close(): Promise<void>;
}>;

export async function startMailReceiver(): Promise<MailReceiver> {
  const received: string[] = [];
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    logger: false,
    onData(stream, _session, done) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        received.push(Buffer.concat(chunks).toString('utf8'));
        done(null, 'OK');
      });
    },
  });
  server.on('error', () => {});
  server.listen(0, '127.0.0.1');
  await once(server.server, 'listening');
  return {
    port: (server.server.address() as AddressInfo).port,
    received,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
