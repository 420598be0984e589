import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newOrder, type OrderInput } from './new-order.ts';

const input: OrderInput = {
  idempotencyKey: 'key-12345',
  request: { a: 1 },
  traceId: null,
  traceparent: null,
};
const place = { destination: 'broker', orderingKey: null };
const digestOf = (request: OrderInput['request']) => newOrder({ ...input, request }, place).digest;

test('the trace id is the given one, else a valid one of the request', () => {
  const traceIdOf = (more: Partial<OrderInput>) => newOrder({ ...input, ...more }, place).traceId;
  assert.equal(traceIdOf({ traceId: 'given', request: { trace_id: 'own' } }), 'given');
  assert.equal(traceIdOf({ request: { trace_id: 'own' } }), 'own');
  for (const trace_id of [7, null, '', 'x'.repeat(256), { id: 'x' }])
    assert.equal(traceIdOf({ request: { trace_id } }), null);
});

test('the digest covers the request without its trace id and key', () => {
  assert.equal(digestOf({ a: 1, trace_id: 't', idempotency_key: 'k' }), digestOf({ a: 1 }));
  assert.notEqual(digestOf({ a: { trace_id: 't' } }), digestOf({ a: {} }));
  const elsewhere = newOrder(input, { destination: 'warehouse', orderingKey: null });
  const keyed = newOrder(input, { destination: 'broker', orderingKey: 'k' });
  assert.equal(new Set([digestOf(input.request), elsewhere.digest, keyed.digest]).size, 3);
});

test('the numbers of a request are stored in their shortest form', () => {
  assert.equal(newOrder({ ...input, request: { n: 10000.0, m: -0 } }, place).request, '{"n":10000,"m":0}');
});
