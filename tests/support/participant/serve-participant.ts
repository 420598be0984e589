import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import {
  actFor,
  isDeliveredAgain,
  type Op,
  type ParticipantAct,
  type ParticipantCall,
  type ParticipantScript,
} from './script.ts';
import { openBareBook, openGuardedBook, type StepReply, type StepsBook } from './steps-book.ts';

/**
 * A service that takes part in sagas, real HTTP with a script of how it misbehaves. Below `/guarded` it keeps the rules
 * of the guard, below `/bare` every call that gets through happens.
 */
export type Participant = Readonly<{
  port: number;
  setScript(script: ParticipantScript): void;
  /** Lets the calls that are held go on, and every later one. */
  release(): void;
  arrivals(): readonly ParticipantCall[];
  guarded: StepsBook;
  bare: StepsBook;
}>;

export type ParticipantOptions = Readonly<{ port?: number; script?: ParticipantScript; bookFile?: string }>;

export async function serveParticipant({ port = 0, script = {}, bookFile }: ParticipantOptions) {
  const books = { guarded: openGuardedBook(bookFile), bare: openBareBook() };
  const arrivals: ParticipantCall[] = [];
  const counts = new Map<string, number>();
  const released = Promise.withResolvers<void>();
  let current = script;

  const receive = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const call = callOf(request.headers, await text(request));
    const book = request.url?.startsWith('/bare') === true ? books.bare : books.guarded;
    if (call === null) return send(response, { status: 400, body: '{"error":"saga headers are missing"}' });
    const name = `${call.sagaId} ${call.step} ${call.op}`;
    const arrival = (counts.get(name) ?? 0) + 1;
    counts.set(name, arrival);
    arrivals.push(call);
    const { again } = current;
    if (again !== undefined && isDeliveredAgain(current, call, arrival))
      setTimeout(() => book.arrive(call, 'do'), again.afterMs);
    perform(actFor(current, call, arrival), { call, book, response, released: released.promise });
  };

  const server = createServer((request, response) => void receive(request, response).catch(() => {}));
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    ...books,
    port: (server.address() as AddressInfo).port,
    setScript: (next) => void (current = next),
    release: released.resolve,
    arrivals: () => arrivals,
  } satisfies Participant;
}

/** Null where it is no call of a saga. */
function callOf(headers: IncomingHttpHeaders, body: string): ParticipantCall | null {
  const read = (name: string): string => String(headers[name] ?? '');
  const [sagaId, step, op] = [read('saga-id'), read('saga-step'), read('saga-op')];
  if (sagaId === '' || step === '' || (op !== 'action' && op !== 'compensate')) return null;
  return {
    sagaId,
    step,
    op: op satisfies Op,
    attempt: Number(read('saga-attempt')),
    epoch: Number(read('saga-epoch')),
    deadline: Date.parse(read('saga-deadline')),
    tag: tagIn(body),
    body,
  };
}

function tagIn(body: string): string {
  const { tag } = (JSON.parse(body) ?? {}) as Readonly<{ tag?: unknown }>;
  return String(tag ?? '');
}

type Stage = Readonly<{
  call: ParticipantCall;
  book: StepsBook;
  response: ServerResponse;
  released: Promise<void>;
}>;

const hugeBytes = 400_000;

function perform(does: ParticipantAct, { call, book, response, released }: Stage): void {
  const cause = (): StepReply => book.arrive(call, 'do');
  switch (does.act) {
    case 'ok': {
      const reply = cause();
      return void setTimeout(() => send(response, reply), does.delayMs ?? 0);
    }
    case 'late':
      return void setTimeout(() => send(response, cause()), does.ms);
    case 'hold': {
      const before = does.effect === 'before' ? cause() : null;
      return void released.then(() => send(response, before ?? cause()));
    }
    case 'hang':
      if (does.effect) cause();
      return;
    case 'reset':
      if (does.effect) cause();
      return void response.socket?.resetAndDestroy();
    case 'status': {
      if (does.effect) cause();
      const { status, retryAfterS } = does;
      const body = JSON.stringify({ error: status });
      return send(response, retryAfterS === undefined ? { status, body } : { status, body, retryAfterS });
    }
    case 'refuse': {
      const reply = book.arrive(call, 'refuse');
      return send(response, reply.status === 409 ? { ...reply, status: does.status ?? 409 } : reply);
    }
    case 'garbage':
      if (does.effect) cause();
      if (does.as === 'bytes') return void response.socket?.end('\u0000\u0001 this is not HTTP\r\n\r\n');
      return send(response, {
        status: 200,
        body: does.as === 'text' ? '<html>' : JSON.stringify('x'.repeat(hugeBytes)),
      });
    case 'work': {
      const reply = book.arrive(call, call.op === 'action' ? 'begin' : 'do');
      if (reply.status === 202) setTimeout(() => book.complete(call), does.ms);
      return send(response, reply);
    }
  }
}

function send(response: ServerResponse, { status, body, retryAfterS }: StepReply): void {
  if (response.destroyed) return;
  response.writeHead(status, {
    ...(body === '' ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
    ...(retryAfterS === undefined ? {} : { 'retry-after': String(retryAfterS) }),
  });
  response.end(body);
}
