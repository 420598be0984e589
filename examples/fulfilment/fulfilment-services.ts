import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { kindOf, type Kind } from './orders.ts';

/** Three services over HTTP: real servers, each with failings of its own. */
export type FulfilmentServices = Readonly<{
  /** What belongs under `services` in the configuration. */
  services: Readonly<Record<string, Readonly<{ type: 'http'; base_url: string }>>>;
  close(): Promise<void>;
}>;

/** What Redrive says with every call, and what the step sends. */
type Call = Readonly<{
  sagaId: string;
  step: string;
  isUndo: boolean;
  attempt: number;
  kind: Kind;
  orderId: string;
}>;

type Reply = Readonly<{ status: number; body?: object }>;

/** What a service does with an action, and with its undo. */
type Deeds = Readonly<{ act(call: Call): Reply; undo?(call: Call): Reply }>;

const refuse = (status: number, error: string): Reply => ({ status, body: { error } });

const inventory: Deeds = {
  act: ({ kind, orderId }) =>
    kind === 'sold-out'
      ? refuse(422, 'there is none left')
      : { status: 200, body: { reservation_id: `r-${orderId}` } },
  undo: () => ({ status: 204 }),
};

const payment: Deeds = {
  act({ kind, orderId, attempt }) {
    if (kind === 'declined') return refuse(409, 'the card was declined');
    // Nobody knows now whether the money was taken. It was not, but only asking again tells.
    if (kind === 'flaky' && attempt === 1) return refuse(500, 'something went wrong here');
    return { status: 200, body: { charge_id: `c-${orderId}` } };
  },
  undo({ kind, attempt }) {
    if (kind === 'closed-card') return refuse(422, 'the card is closed: pay it back by hand');
    if (kind === 'late-refund' && attempt < refundedAt)
      return refuse(429, 'too many refunds: try again later');
    return { status: 204 };
  },
};

/** Undos are tried again for hours, with growing pauses: this one takes a few minutes. */
const refundedAt = 9;

/** How often it is asked for a parcel before it has left. */
const looksAt: Readonly<Partial<Record<Kind, number>>> = { heavy: 3, 'made-to-order': 20 };
const hasNoAddress: ReadonlySet<Kind> = new Set(['undeliverable', 'late-refund', 'closed-card']);

function createShipping(): Deeds {
  const looks = new Map<string, number>();
  return {
    act({ kind, orderId }) {
      if (hasNoAddress.has(kind)) return refuse(422, 'there is no such address');
      const seen = (looks.get(orderId) ?? 0) + 1;
      if (seen < (looksAt[kind] ?? 0)) {
        looks.set(orderId, seen);
        return { status: 202 };
      }
      looks.delete(orderId);
      return { status: 200, body: { shipment_id: `s-${orderId}` } };
    },
  };
}

export async function startFulfilmentServices(): Promise<FulfilmentServices> {
  const started = await Promise.all(
    Object.entries({ inventory, payment, shipping: createShipping() }).map(async ([name, deeds]) => ({
      name,
      server: await serve(deeds),
    })),
  );
  return {
    services: Object.fromEntries(
      started.map(({ name, server }) => [name, { type: 'http', base_url: urlOf(server) }]),
    ),
    async close() {
      await Promise.all(started.map(({ server }) => close(server)));
    },
  };
}

type Entry = Readonly<{ phase: 'done' | 'refused' | 'undone' | 'void'; reply: Reply }>;

/** Enough for all that may still come; a real service keeps this in its database, with what it stands for. */
const maxEntries = 10_000;

/**
 * Calls may come twice, late, and an undo before its action. So each step of each saga has one entry, which says what
 * has become of it: an action happens once at most, never after its undo, and an undo only undoes what was done.
 */
function guard(deeds: Deeds): (call: Call) => Reply {
  const entries = new Map<string, Entry>();
  const keep = (key: string, entry: Entry): Reply => {
    entries.set(key, entry);
    const [oldest] = entries.keys();
    if (entries.size > maxEntries && oldest !== undefined) entries.delete(oldest);
    return entry.reply;
  };
  return (call) => {
    const key = `${call.sagaId} ${call.step}`;
    const known = entries.get(key);
    if (call.isUndo) {
      if (known?.phase === 'undone') return known.reply;
      if (known?.phase !== 'done') return keep(key, { phase: 'void', reply: { status: 204 } });
      const reply = deeds.undo?.(call) ?? { status: 204 };
      return reply.status < 300 ? keep(key, { phase: 'undone', reply }) : reply;
    }
    if (known?.phase === 'done' || known?.phase === 'refused') return known.reply;
    if (known !== undefined) return refuse(409, 'it has been undone already');
    const reply = deeds.act(call);
    if (reply.status === 200) return keep(key, { phase: 'done', reply });
    return reply.status === 409 || reply.status === 422 ? keep(key, { phase: 'refused', reply }) : reply;
  };
}

async function serve(deeds: Deeds): Promise<Server> {
  const answer = guard(deeds);
  const server = createServer((request, response) => {
    readCall(request).then(
      (call) => send(response, answer(call)),
      (error: unknown) => send(response, refuse(400, String(error))),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

const urlOf = (server: Server): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

async function close(server: Server): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  server.closeAllConnections();
  await closed;
}

async function readCall(request: IncomingMessage): Promise<Call> {
  const { order_id: orderId } = JSON.parse(await text(request)) as { order_id: string };
  const { headers } = request;
  return {
    sagaId: String(headers['saga-id']),
    step: String(headers['saga-step']),
    isUndo: headers['saga-op'] === 'compensate',
    attempt: Number(headers['saga-attempt']),
    kind: kindOf(orderId),
    orderId,
  };
}

function send(response: ServerResponse, { status, body }: Reply): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(body === undefined ? undefined : JSON.stringify(body));
}
