import assert from 'node:assert/strict';
import { test } from 'node:test';
import { newOrder, schemaViolation, type AskedOrder } from './add-order.ts';

const asked: AskedOrder = {
  idempotencyKey: 'key-12345',
  request: { a: 1 },
  traceId: null,
  traceparent: null,
};
const place = { destination: 'broker', orderingKey: null };
const digestOf = (request: AskedOrder['request']) => newOrder({ ...asked, request }, place).digest;

test('the trace id is the one that was given, else that of the request if it is fit to be one', () => {
  const traceIdOf = (more: Partial<AskedOrder>) => newOrder({ ...asked, ...more }, place).traceId;
  assert.equal(traceIdOf({ traceId: 'given', request: { trace_id: 'own' } }), 'given');
  assert.equal(traceIdOf({ request: { trace_id: 'own' } }), 'own');
  for (const trace_id of [7, null, '', 'x'.repeat(256), { id: 'x' }])
    assert.equal(traceIdOf({ request: { trace_id } }), null);
});

test('a digest is of what is asked for, not of how it is traced', () => {
  assert.equal(digestOf({ a: 1, trace_id: 't', idempotency_key: 'k' }), digestOf({ a: 1 }));
  assert.notEqual(digestOf({ a: { trace_id: 't' } }), digestOf({ a: {} }));
  const elsewhere = newOrder(asked, { destination: 'warehouse', orderingKey: null });
  const keyed = newOrder(asked, { destination: 'broker', orderingKey: 'k' });
  assert.equal(new Set([digestOf(asked.request), elsewhere.digest, keyed.digest]).size, 3);
});

test('the numbers of a request are stored in their shortest form', () => {
  assert.equal(newOrder({ ...asked, request: { n: 10000.0, m: -0 } }, place).request, '{"n":10000,"m":0}');
});

test('a violation names the first flaws in words and all of them as details', () => {
  const flaws = ['a', 'b', 'c', 'd', 'e'].map((name) => ({
    field: `request.${name}`,
    reason: 'required',
    message: 'is required',
  }));
  const violation = schemaViolation({ name: 'broker', isInternal: false, flawsOf: () => flaws }, {});
  assert.equal(violation?.code, 'SYS_OUTBOX_SCHEMA_VIOLATION');
  assert.match(violation?.message ?? '', /broker.*request\.a is required; .*; and 2 more$/);
  assert.deepEqual(violation?.details, flaws);
  assert.equal(schemaViolation({ name: 'broker', isInternal: false, flawsOf: () => [] }, {}), null);
});
