import assert from 'node:assert/strict';
import { test } from 'node:test';
import { chanceFrom } from './chance.ts';
import { makeOrder, type Order } from './order.ts';
import { carriersWithBug, carriersWithoutBug, shipOrder } from './ship-order.ts';

const chance = chanceFrom('any');
const orders = Array.from({ length: 3000 }, (_, index) => makeOrder(index + 1, chance));
const giftCard: Order = { ...makeOrder(2, chance), warehouse: 'gdansk' };

function timesOut(order: Order, attempt: number): boolean {
  try {
    shipOrder({ carriers: carriersWithoutBug, chance }, order, attempt);
    return false;
  } catch {
    return true;
  }
}

test('only Osaka times out, for some of its orders', () => {
  const timedOut = orders.filter((order) => timesOut(order, 0));
  assert.ok(timedOut.every(({ warehouse }) => warehouse === 'osaka'));
  const share = timedOut.length / orders.length;
  assert.ok(share > 0.08 && share < 0.16, `${share} of all orders time out`);
});

test('most orders that timed out ship at the first retry, but not all', () => {
  const timedOut = orders.filter((order) => timesOut(order, 0));
  const again = timedOut.filter((order) => timesOut(order, 1)).length / timedOut.length;
  assert.ok(again > 0.25 && again < 0.45, `${again} of them time out again`);
});

test('gift cards ship only without the bug', () => {
  assert.equal(giftCard.category, 'gift card');
  assert.throws(() => shipOrder({ carriers: carriersWithBug, chance }, giftCard, 0), {
    name: 'NoCarrierError',
  });
  shipOrder({ carriers: carriersWithoutBug, chance }, giftCard, 0);
});
