import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseExactJson } from '../../kernel/exact-json.ts';
import { requestDigest, type DigestedOrder } from './request-digest.ts';

const order: DigestedOrder = {
  destination: 'broker',
  orderingKey: 'USDJPY',
  request: {
    symbol: 'USDJPY',
    intent: 'BUY',
    qty: 10_000,
    limit_price: 145.001,
    meta: { source: 'DoLayer' },
  },
};

const digestOf = (changes: Partial<DigestedOrder> = {}): string => requestDigest({ ...order, ...changes });

const digestOfText = (text: string): string => {
  const read = parseExactJson(text);
  assert(read.ok);
  return digestOf({ request: read.value as DigestedOrder['request'] });
};

// Stored digests must stay comparable, so this value must never change.
test('digests stay the same between versions', () => {
  assert.equal(digestOf(), 'sha256:7b74bfc4eec250dd66cbfe694e0668200586989ff431b20eff1fd54e3eb2dd69');
  assert.equal(
    digestOf({ orderingKey: null, request: {} }),
    'sha256:6c995ca8d066193cedac7a2fdaaf8301279aeba3d721c3bff3cdb201158f02ec',
  );
});

test('another notation of the request has the same digest', () => {
  const text = String.raw`{"qty": 1e4, "meta":{"source":"DoLayer"}, "intent":"\u0042UY", "limit_price":145.0010, "symbol":"USDJPY"}`;
  assert.equal(digestOfText(text), digestOf());
});

test('trace id and key do not count at the top level of the request', () => {
  const { request } = order;
  assert.equal(digestOf({ request: { ...request, trace_id: 't-1', idempotency_key: { a: 1 } } }), digestOf());
  const nested = { ...request, meta: { source: 'DoLayer', trace_id: 't-1' } };
  assert.notEqual(digestOf({ request: nested }), digestOf());
});

test('destination, ordering key and every other field count', () => {
  const all = [
    digestOf(),
    digestOf({ destination: 'other' }),
    digestOf({ orderingKey: null }),
    digestOf({ orderingKey: 'null' }),
    digestOf({ request: { ...order.request, qty: 10_001 } }),
    digestOf({ request: { ...order.request, qty: '10000' } }),
    digestOf({ request: { ...order.request, more: null } }),
  ];
  assert.equal(new Set(all).size, all.length);
});
