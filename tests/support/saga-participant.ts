import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One call that came. */
export type SeenCall = Readonly<{
  sagaId: string;
  /** `reserve`, and `undo reserve`. */
  what: string;
  verb: string;
  path: string;
  headers: IncomingHttpHeaders;
  body: unknown;
}>;

/** `hang`: no answer, ever. */
export type Reply =
  | Readonly<{ status: number; body?: unknown; headers?: Readonly<Record<string, string>> }>
  | 'hang';

/** What it does with a call; undefined is the effect and a 200. */
export type ParticipantScript = (call: SeenCall) => Reply | Promise<Reply | undefined> | undefined;

/**
 * A service that sagas call over HTTP: a real server with a ledger. An effect happens once per idempotency key, however
 * often it is asked for, and only where the answer is 200.
 */
export type Participant = Readonly<{
  url: string;
  calls: readonly SeenCall[];
  /** Of one saga, in the order of their arrival. */
  callsOf(sagaId: string): readonly string[];
  /** What has happened for a saga, in its order. */
  effectsOf(sagaId: string): readonly string[];
  setScript(script: ParticipantScript): void;
  stop(): Promise<void>;
}>;

export async function startParticipant(onPort = 0): Promise<Participant> {
  const calls: SeenCall[] = [];
  const effects = new Map<string, SeenCall>();
  let script: ParticipantScript = () => undefined;

  const answer = async (call: SeenCall, response: ServerResponse): Promise<void> => {
    const reply = (await script(call)) ?? { status: 200, body: { id: `${call.what}-1` } };
    if (reply === 'hang') return;
    const key = String(call.headers['idempotency-key']);
    if (reply.status === 200 && !effects.has(key)) effects.set(key, call);
    const text = reply.body === undefined ? '' : JSON.stringify(reply.body);
    response.writeHead(reply.status, { 'content-type': 'application/json', ...reply.headers }).end(text);
  };

  const server = createServer((message, response) => {
    void readCall(message).then((call) => {
      calls.push(call);
      return answer(call, response);
    });
  });
  server.listen(onPort, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const namesOf = (seen: Iterable<SeenCall>, id: string): readonly string[] =>
    [...seen].filter(({ sagaId }) => sagaId === id).map(({ what }) => what);
  return {
    url: `http://127.0.0.1:${port}`,
    calls,
    callsOf: (sagaId) => namesOf(calls, sagaId),
    effectsOf: (sagaId) => namesOf(effects.values(), sagaId),
    setScript: (next) => void (script = next),
    async stop() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}

async function readCall(message: IncomingMessage): Promise<SeenCall> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString('utf8');
  const { headers } = message;
  const step = String(headers['saga-step']);
  return {
    sagaId: String(headers['saga-id']),
    what: headers['saga-op'] === 'compensate' ? `undo ${step}` : step,
    verb: message.method ?? '',
    path: message.url ?? '',
    headers,
    body: text === '' ? undefined : JSON.parse(text),
  };
}
