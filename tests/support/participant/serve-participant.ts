import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { setTimeout as wait } from 'node:timers/promises';
import {
  actFor,
  isDeliveredAgain,
  type Op,
  type ParticipantAct,
  type ParticipantCall,
  type ParticipantScript,
} from './script.ts';
import { openGuardedBook } from './guarded-book.ts';
import { openBareBook, type StepReply, type StepsBook } from './steps-book.ts';

/**
 * A service that takes part in sagas, real HTTP with a script of how it misbehaves. Below `/guarded` it has the saga
 * guard, below `/bare` every call that gets through happens.
 */
export type Participant = Readonly<{
  port: number;
  setScript(script: ParticipantScript): void;
  /** Lets the held calls of a tag go on, and every later one. */
  release(tag: string): void;
  arrivals(): readonly ParticipantCall[];
  guarded: StepsBook;
  bare: StepsBook;
}>;

export type ParticipantOptions = Readonly<{
  /** Where it keeps its own tables; what it has done outlives it. */
  databaseUrl: string;
  port?: number;
  script?: ParticipantScript;
}>;

export async function serveParticipant(options: ParticipantOptions): Promise<Participant> {
  const { databaseUrl, port = 0, script = {} } = options;
  const books = { guarded: await openGuardedBook(databaseUrl), bare: openBareBook() };
  const arrivals: ParticipantCall[] = [];
  const counts = new Map<string, number>();
  const gates = new Map<string, PromiseWithResolvers<void>>();
  let current = script;

  const gateOf = (tag: string): PromiseWithResolvers<void> => {
    const gate = gates.get(tag) ?? Promise.withResolvers<void>();
    gates.set(tag, gate);
    return gate;
  };

  const receive = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const call = callOf(request, await text(request));
    if (call === null) return send(response, { status: 400, body: '{"error":"saga headers are missing"}' });
    const book = call.isGuarded ? books.guarded : books.bare;
    const name = `${call.sagaId} ${call.step} ${call.op}`;
    const arrival = (counts.get(name) ?? 0) + 1;
    counts.set(name, arrival);
    arrivals.push(call);
    const { again } = current;
    if (again !== undefined && isDeliveredAgain(current, call, arrival))
      setTimeout(() => void book.arrive(call, { do: 'do' }).catch(() => {}), again.afterMs);
    await perform(actFor(current, call, arrival), {
      call,
      book,
      response,
      released: gateOf(call.tag).promise,
    });
  };

  const server = createServer(
    (request, response) =>
      // Its database may be away.
      void receive(request, response).catch(() =>
        send(response, { status: 500, body: '{"error":"failed"}' }),
      ),
  );
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    ...books,
    port: (server.address() as AddressInfo).port,
    setScript: (next) => void (current = next),
    release: (tag) => gateOf(tag).resolve(),
    arrivals: () => arrivals,
  };
}

const sagaHeaders = ['saga-id', 'saga-step', 'saga-op', 'saga-attempt', 'saga-started-at', 'saga-deadline'];

/** Null where it is no call of a saga. */
function callOf({ headers, url = '' }: IncomingMessage, body: string): ParticipantCall | null {
  const read = (name: string): string => String(headers[name] ?? '');
  const [sagaId, step, op] = [read('saga-id'), read('saga-step'), read('saga-op')];
  if (sagaId === '' || step === '' || (op !== 'action' && op !== 'compensate')) return null;
  return {
    sagaId,
    step,
    op: op satisfies Op,
    attempt: Number(read('saga-attempt')),
    headers: Object.fromEntries(sagaHeaders.map((name) => [name, read(name)])),
    isGuarded: url.startsWith('/guarded'),
    tag: tagIn(body),
    body,
  };
}

function tagIn(body: string): string {
  const { tag } = (JSON.parse(body) ?? {}) as Readonly<{ tag?: string }>;
  return tag ?? '';
}

type Stage = Readonly<{
  call: ParticipantCall;
  book: StepsBook;
  response: ServerResponse;
  released: Promise<void>;
}>;

const hugeBytes = 400_000;

async function perform(does: ParticipantAct, { call, book, response, released }: Stage): Promise<void> {
  const cause = (): Promise<StepReply> => book.arrive(call, { do: 'do' });
  if ('effect' in does && does.effect === true) await cause();
  switch (does.act) {
    case 'ok': {
      const reply = await cause();
      if (does.delayMs !== undefined) await wait(does.delayMs);
      return send(response, reply);
    }
    case 'late':
      await wait(does.ms);
      return send(response, await cause());
    case 'hold': {
      const before = does.effect === 'before' ? await cause() : null;
      await released;
      return send(response, before ?? (await cause()));
    }
    case 'hang':
      return;
    case 'reset':
      return void response.socket?.resetAndDestroy();
    case 'status': {
      const { status, retryAfterS } = does;
      const body = JSON.stringify({ error: status });
      return send(response, retryAfterS === undefined ? { status, body } : { status, body, retryAfterS });
    }
    case 'refuse': {
      const reply = await book.arrive(call, { do: 'refuse' });
      return send(response, reply.status === 409 ? { ...reply, status: does.status ?? 409 } : reply);
    }
    case 'garbage': {
      if (does.as === 'bytes') return void response.socket?.end('\u0000\u0001 this is not HTTP\r\n\r\n');
      const body = does.as === 'text' ? '<html>' : JSON.stringify('x'.repeat(hugeBytes));
      return send(response, { status: 200, body });
    }
    case 'work':
      return send(response, await book.arrive(call, { do: 'begin', ms: does.ms }));
  }
}

function send(response: ServerResponse, { status, body, retryAfterS }: StepReply): void {
  if (response.destroyed || response.headersSent) return;
  response.writeHead(status, {
    ...(body === '' ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
    ...(retryAfterS === undefined ? {} : { 'retry-after': String(retryAfterS) }),
  });
  response.end(body);
}
