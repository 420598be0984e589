import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { test, type TestContext } from 'node:test';
import { chanceFrom } from '../orders-pipeline/chance.ts';
import type { Mistake } from './desk-orders.ts';
import { runDesk } from './desk.ts';
import { createRedriveClient, type StuckOrder } from './redrive-client.ts';

/** The desk against a server in Redrive's place that says what the test wants it to see. */

type Seen = Readonly<{ stuck?: readonly StuckOrder[]; count?: number; waiting?: number; status?: number }>;
type Placed = Readonly<{ idempotency_key: string; ordering_key?: string; request: { symbol?: string } }>;

/** Lets the desk have so many turns, one right after another; what it placed, and what it told. */
async function runTurns(context: TestContext, turns: number, see: (placed: number) => Seen) {
  const placed: Placed[] = [];
  const server = createServer((request, response) => {
    response.setHeader('content-type', 'application/json');
    void text(request).then((body) => {
      const { stuck = [], count = stuck.length, waiting = 0, status = 201 } = see(placed.length);
      if (request.method === 'POST') {
        placed.push(JSON.parse(body) as Placed);
        const error = {
          code: 'SYS_OUTBOX_REFUSED',
          message: 'not like this',
          request_id: 'r-1',
          details: [],
        };
        return response.writeHead(status).end(JSON.stringify(status < 300 ? {} : { error }));
      }
      const isList = request.url?.startsWith('/api/v1/outbox/orders?needs_attention=true') === true;
      const answer = isList
        ? { orders: stuck, pagination: { total_count: count } }
        : { destinations: [{ waiting: 0 }, { waiting }] };
      return response.end(JSON.stringify(answer));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  context.after(() => server.close().closeAllConnections());
  const { port } = server.address() as AddressInfo;

  const stopping = new AbortController();
  const mistakes: Mistake[] = [];
  const waits: number[] = [];
  await runDesk({
    redrive: createRedriveClient(`http://127.0.0.1:${port}`, stopping.signal),
    chance: chanceFrom('any'),
    signal: stopping.signal,
    sleep: async (ms) => {
      waits.push(ms);
      if (waits.length === turns) stopping.abort();
    },
    onMistake: (mistake) => mistakes.push(mistake),
  });
  return { placed, mistakes, waits };
}

const isMisspelt = ({ request }: Placed): boolean => request.symbol === 'USDJPX';

function stuck(id: number, more: Partial<StuckOrder> = {}): StuckOrder {
  return { id, ordering_key: null, in_doubt: false, request: { symbol: 'USDJPX' }, ...more };
}

test('an order that was not taken is placed again with the same key', async (t) => {
  const { placed } = await runTurns(t, 4, (count) => ({ status: [503, 409, 500][count] ?? 201 }));
  assert.equal(placed.length, 4);
  assert.equal(new Set(placed.map((order) => order.idempotency_key)).size, 1);
});

test('an order that is refused ends the desk with what was said about it', async (t) => {
  await assert.rejects(
    runTurns(t, 4, () => ({ status: 400 })),
    { name: 'ApiError', message: 'not like this', status: 400 },
  );
});

test('an account is left alone while one of its orders needs attention', async (t) => {
  const { placed } = await runTurns(t, 80, () => ({ stuck: [stuck(7, { ordering_key: 'account-7' })] }));
  assert.deepEqual(
    placed.filter((order) => order.ordering_key === 'account-7'),
    [],
  );
  assert.equal(placed.filter(isMisspelt).length, 2);
});

test('while ten orders need attention, the desk makes no more mistakes', async (t) => {
  const { placed } = await runTurns(t, 80, () => ({ count: 10 }));
  assert.deepEqual(placed.filter(isMisspelt), []);
});

test('while a hundred orders wait, the desk places none', async (t) => {
  const { placed } = await runTurns(t, 80, () => ({ waiting: 100 }));
  assert.equal(placed.length, 3);
});

test('it tells of one mistake, and rather of one that holds others back', async (t) => {
  const { mistakes } = await runTurns(t, 20, () => ({
    stuck: [stuck(9), stuck(8, { in_doubt: true }), stuck(7, { ordering_key: 'account-7' })],
  }));
  assert.deepEqual(
    mistakes.map(({ id, account }) => ({ id, account })),
    [{ id: 7, account: 'account-7' }],
  );
});

test('it goes on more slowly when nobody looks any more', async (t) => {
  const { waits } = await runTurns(t, 610, () => ({ waiting: 100 }));
  assert.equal(
    waits.slice(0, 599).every((ms) => ms === 1000),
    true,
  );
  assert.equal(
    waits.slice(599).every((ms) => ms === 10_000),
    true,
  );
});
