import { hash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { sleep } from '../../src/kernel/clock.ts';
import { codeOf } from '../../src/kernel/errors.ts';
import { openBook, type Book, type Effect } from './book.ts';
import { moodAt } from './mood.ts';
import { createRateLimit } from './rate-limit.ts';

/** A broker that trades currencies over HTTP: a real server, with the failings of a real partner. */
export type Partner = Readonly<{
  /** Orders are posted here; to look, `GET` it for the book and `GET …/<key>` for one order. */
  url: string;
  book: Book;
  /** Connections are refused from now on, and those that there are break off. */
  goAway(): Promise<void>;
  comeBack(): Promise<void>;
  close(): Promise<void>;
}>;

export type PartnerOptions = Readonly<{
  /** Where its book outlives the process. */
  bookFile?: string | undefined;
  /** What comes faster is told to come later. */
  limit?: Limit | undefined;
}>;

export type Limit = Readonly<{ ordersPerSecond: number; retryAfterSeconds: number }>;

export const tradedSymbols = ['USDJPY', 'EURUSD', 'GBPUSD', 'EURJPY'] as const;

/** Twice what is promised by `dedup_window`. */
const keepKeysMs = 2 * 3_600_000;
const usualLimit: Limit = { ordersPerSecond: 5, retryAfterSeconds: 2 };
const shownEffects = 8;
const host = '127.0.0.1';

export async function startPartner({ bookFile, limit = usualLimit }: PartnerOptions = {}): Promise<Partner> {
  const book = openBook({ file: bookFile, keepMs: keepKeysMs });
  const takeOrder = createOrderTaker(book, limit);
  const server = createServer((request, response) => {
    answer(request, book, takeOrder).then(
      (reply) => send(response, reply),
      (error: unknown) => send(response, { status: 500, body: { error: String(error) } }),
    );
  });
  await listen(server, 0);
  const { port } = server.address() as AddressInfo;
  const closing = new AbortController();
  const goAway = async (): Promise<void> => {
    if (!server.listening) return;
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  };
  return {
    url: `http://${host}:${port}/orders`,
    book,
    goAway,
    async comeBack() {
      // Its port was free a moment ago; if it is somebody's source port by now, it will be free again.
      while (!closing.signal.aborted && !(await listen(server, port))) await sleep(500, closing.signal);
    },
    async close() {
      closing.abort();
      await goAway();
    },
  };
}

/** False where the port is taken. */
async function listen(server: Server, port: number): Promise<boolean> {
  server.listen(port, host);
  try {
    await once(server, 'listening');
    return true;
  } catch (error) {
    if (codeOf(error) === 'EADDRINUSE') return false;
    throw error;
  }
}

/** `silence`: the connection stays open until the sender has waited long enough. */
type Reply =
  | Readonly<{ status: number; body: object | string; headers?: Readonly<Record<string, string>> }>
  | 'silence';

type OrderTaker = (idempotencyKey: string, body: string) => Reply;

async function answer(request: IncomingMessage, book: Book, takeOrder: OrderTaker): Promise<Reply> {
  const [, place, key] = (request.url ?? '').split('/').map(decodeURIComponent);
  if (place !== 'orders') return error(404, 'no such place');
  if (request.method === 'GET') return key === undefined ? showBook(book) : showOrder(book, key);
  return takeOrder(String(request.headers['idempotency-key'] ?? ''), await text(request));
}

function send(response: ServerResponse, reply: Reply): void {
  if (reply === 'silence') return;
  const { status, body, headers } = reply;
  const [type, content] =
    typeof body === 'string'
      ? ['text/plain; charset=utf-8', body]
      : ['application/json', JSON.stringify(body)];
  response.writeHead(status, { 'content-type': type, ...headers }).end(content);
}

/** What it has done it knows, in whatever mood it is: nothing is done twice for one key. */
function createOrderTaker(book: Book, limit: Limit): OrderTaker {
  const isWithinLimit = createRateLimit(limit.ordersPerSecond);
  let tried = 0;
  return (idempotencyKey, body) => {
    if (idempotencyKey === '') return error(400, 'the Idempotency-Key is missing');
    if (!isWithinLimit(performance.now())) return tooMany(limit);
    const digest = hash('sha256', body);
    const done = book.ask(idempotencyKey);
    if (done !== undefined) return repeat(done, digest);
    const { symbol, intent, qty } = readOrder(body);
    if (!tradedSymbols.some((traded) => traded === symbol)) return error(400, `${symbol} is not traded here`);
    const order = { idempotencyKey, digest, order: `${intent} ${qty} ${symbol}` };
    tried += 1;
    switch (moodAt(tried)) {
      case 'well':
        return { status: 200, body: accepted(book.enter({ ...order, firstAnswer: 'accepted' })) };
      case 'unavailable':
        return error(503, 'not now, please');
      case 'failing':
        book.enter({ ...order, firstAnswer: 'error' });
        return error(500, 'something went wrong here');
      case 'silent':
        book.enter({ ...order, firstAnswer: 'nothing' });
        return 'silence';
    }
  };
}

type Order = Readonly<{ symbol?: string; intent?: string; qty?: number }>;

/** What is no JSON has no symbol, and is not traded. */
function readOrder(body: string): Order {
  try {
    return (JSON.parse(body) ?? {}) as Order;
  } catch {
    return {};
  }
}

function error(status: number, message: string): Reply {
  return { status, body: { error: message } };
}

function tooMany({ ordersPerSecond, retryAfterSeconds }: Limit): Reply {
  return {
    status: 429,
    headers: { 'retry-after': String(retryAfterSeconds) },
    body: { error: `at most ${ordersPerSecond} orders a second, please` },
  };
}

/** Who asks again is told what has happened: some partners say it with a 409, some with the first answer. */
function repeat(effect: Effect, digest: string): Reply {
  if (effect.digest !== digest) return error(422, 'this key came with another order before');
  return effect.firstAnswer === 'error'
    ? { status: 409, body: { error: 'already processed', ...accepted(effect) } }
    : { status: 200, body: accepted(effect) };
}

function accepted({ brokerOrderId, idempotencyKey, atMs }: Effect): object {
  return {
    broker_order_id: brokerOrderId,
    accepted_at: new Date(atMs).toISOString(),
    status: 'accepted',
    fills: [],
    idempotency_key: idempotencyKey,
  };
}

function showOrder(book: Book, key: string): Reply {
  const effect = book.find(key);
  return effect === undefined ? error(404, 'no such order') : { status: 200, body: accepted(effect) };
}

/** For people: who sent it how often, and that it was done once. */
function showBook(book: Book): Reply {
  const effects = book.effects();
  const again = effects.filter(({ timesAsked }) => timesAsked > 1);
  const lines = [
    `Orders done in the last two hours: ${effects.length}, each of them once. Asked for again: ${again.length}.`,
    '',
    'The newest:',
    ...effects.slice(-shownEffects).toReversed().map(lineOf),
    '',
    'The newest that were asked for again:',
    ...again.slice(-shownEffects).toReversed().map(lineOf),
  ];
  return { status: 200, body: `${lines.join('\n')}\n` };
}

const words = {
  accepted: 'accepted',
  error: 'at first answered with 500',
  nothing: 'at first not answered',
} as const;

function lineOf({ brokerOrderId, idempotencyKey, order, firstAnswer, timesAsked }: Effect): string {
  const told = `${words[firstAnswer]}${timesAsked > 1 ? `, asked for ${timesAsked} times` : ''}`;
  return `  ${brokerOrderId}  ${idempotencyKey.padEnd(24)}  ${order.padEnd(18)}  ${told}`;
}
