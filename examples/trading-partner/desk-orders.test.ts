import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { chanceFrom } from '../orders-pipeline/chance.ts';
import { hastyAccount, mistakeIn, ordersOfTurn, type DeskOrder } from './desk-orders.ts';
import { moodAt } from './mood.ts';
import { createRateLimit } from './rate-limit.ts';

const orderSchema = new URL('../../config/schemas/order.json', import.meta.url);
const chance = chanceFrom('any');

function turns(from: number, to: number, view = { mayMistype: true, isHastyHeld: false }) {
  return Array.from({ length: to - from }, (_, i): readonly DeskOrder[] =>
    ordersOfTurn({ number: from + i, run: 'a1b2c3', chance, ...view }),
  );
}

const isMisspelt = ({ request }: DeskOrder): boolean => request['symbol'] === 'USDJPX';

test('any 40 turns in a row have a mistake with orders behind it, one without, a basket, and positions', () => {
  for (const from of [1, 23, 600]) {
    const all = turns(from, from + 40);
    const orders = all.flat();
    const mistakes = orders.filter(isMisspelt);
    assert.deepEqual(
      new Set(mistakes.map((order) => order.ordering_key)),
      new Set([hastyAccount, undefined]),
    );
    assert.equal(mistakes.length, 2);
    assert.equal(orders.filter((order) => order.ordering_key === hastyAccount).length, 3);
    assert.ok(
      all.some((some) => some.length === 8 && some.every((order) => order.ordering_key === undefined)),
    );
    assert.ok(orders.some((order) => order.destination === 'orders_topic'));
  }
});

test('a desk that may not mistype does not, and leaves an account alone that is held', () => {
  const orders = turns(1, 401, { mayMistype: false, isHastyHeld: true }).flat();
  assert.deepEqual(orders.filter(isMisspelt), []);
  assert.deepEqual(
    orders.filter((order) => order.ordering_key === hastyAccount),
    [],
  );
});

test('every order has a key of its own that Redrive takes, and a request that the schema takes', () => {
  const orders = turns(1, 1001).flat();
  assert.equal(new Set(orders.map((order) => order.idempotency_key)).size, orders.length);
  assert.ok(orders.every((order) => /^[!-~]{8,64}$/.test(order.idempotency_key)));
  const isValid = new Ajv2020().compile(JSON.parse(readFileSync(orderSchema, 'utf8')) as object);
  for (const order of orders.filter(({ destination }) => destination === 'broker'))
    assert.ok(isValid(order.request), JSON.stringify(order.request));
});

test("a mistake tells what was meant; what is not the desk's, or in doubt, is none", () => {
  const request = { symbol: 'USDJPX', intent: 'BUY', qty: 1000, limit_price: 145.2, meta: {} };
  const stuck = { id: 7, ordering_key: hastyAccount, in_doubt: false, request };
  assert.deepEqual(mistakeIn(stuck), {
    id: 7,
    symbol: 'USDJPX',
    account: hastyAccount,
    corrected: { symbol: 'USDJPY', intent: 'BUY', qty: 1000, limit_price: 145.2 },
  });
  assert.equal(mistakeIn({ ...stuck, in_doubt: true }), null);
  assert.equal(mistakeIn({ ...stuck, request: { symbol: 'XAUUSD' } }), null);
  assert.equal(mistakeIn({ ...stuck, request: null }), null);
});

test('any 25 orders in a row meet every mood of the partner, and mostly a good one', () => {
  for (const from of [1, 13]) {
    const moods = Map.groupBy(
      Array.from({ length: 25 }, (_, i) => moodAt(from + i)),
      (mood) => mood,
    );
    assert.deepEqual([...moods.keys()].toSorted(), ['failing', 'silent', 'unavailable', 'well']);
    assert.equal(moods.get('well')?.length, 22);
  }
});

test('the rate limit lets so many through in any second', () => {
  const isWithinLimit = createRateLimit(2);
  assert.deepEqual([0, 400, 500, 999, 1000, 1300, 1400].map(isWithinLimit), [
    true,
    true,
    false,
    false,
    true,
    false,
    true,
  ]);
});
