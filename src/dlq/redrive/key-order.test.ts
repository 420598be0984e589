import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createKeyOrder } from './key-order.ts';

const at = (second: number, key: string | null, targetTopic = 'orders.v1') => ({
  targetTopic,
  orderKey: key === null ? null : Buffer.from(key),
  place: { createdAt: `2026-01-02T03:04:${String(second).padStart(2, '0')}.000000Z`, id: 'id' },
});

test('a refused message blocks its key on its topic, and nothing else', () => {
  const order = createKeyOrder();
  order.refuse(at(1, 'a'));
  assert.equal(order.blockedBy(at(2, 'a')), 'refused');
  assert.equal(order.blockedBy(at(2, 'b')), null);
  assert.equal(order.blockedBy(at(2, 'a', 'payments.v1')), null);
  assert.deepEqual(order.refused(), [{ topic: 'orders.v1', orderKey: Buffer.from('a') }]);
});

test('messages without a key have no order', () => {
  const order = createKeyOrder();
  order.refuse(at(1, null));
  order.wait(at(1, null));
  assert.equal(order.blockedBy(at(2, null)), null);
  assert.deepEqual(order.refused(), []);
});

test('a message that is tried again blocks later messages of its key, not earlier ones', () => {
  const order = createKeyOrder();
  order.wait(at(5, 'a'));
  order.wait(at(6, 'a'));
  assert.deepEqual([order.blockedBy(at(4, 'a')), order.blockedBy(at(7, 'a'))], [null, 'waiting']);
  order.resume(at(5, 'a'));
  assert.deepEqual([order.blockedBy(at(6, 'a')), order.blockedBy(at(7, 'a'))], [null, 'waiting']);
  order.resume(at(6, 'a'));
  assert.equal(order.blockedBy(at(7, 'a')), null);
});
