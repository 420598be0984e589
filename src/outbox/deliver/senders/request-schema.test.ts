import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { compileRequestSchema } from './request-schema.ts';

const shipped = JSON.parse(
  readFileSync(new URL('../../../../config/schemas/order.json', import.meta.url), 'utf8'),
) as Readonly<Record<string, unknown>>;
const order = { symbol: 'USDJPY', intent: 'BUY', qty: 10_000, limit_price: 145.001 };

test("the shipped schema takes the seed's order, with and without what is optional", () => {
  const flawsOf = compileRequestSchema(shipped);
  const whole = {
    ...order,
    idempotency_key: '01JABCXYZ-ULID-5678',
    trace_id: 'do-outbox-01JB4A',
    meta: { source: 'DoLayer', anything: [1] },
  };
  for (const request of [whole, order, { symbol: 'USDJPY', intent: 'SELL', qty: 0.5 }])
    assert.deepEqual(flawsOf(request), []);
});

test('the shipped schema reports every invalid, missing or unknown field', () => {
  const flawsOf = compileRequestSchema(shipped);
  assert.deepEqual(flawsOf({ intent: 'HOLD', qty: 0, limit_price: '145', limt_price: 145 }), [
    { field: 'request.symbol', reason: 'required', message: 'is required' },
    { field: 'request.limt_price', reason: 'additional_properties', message: 'is not allowed' },
    { field: 'request.intent', reason: 'enum', message: 'must be one of: BUY, SELL' },
    { field: 'request.qty', reason: 'exclusive_minimum', message: 'must be > 0' },
    { field: 'request.limit_price', reason: 'type', message: 'must be number' },
  ]);
  for (const request of [null, [], 'order', 1])
    assert.deepEqual(flawsOf(request), [{ field: 'request', reason: 'type', message: 'must be object' }]);
});

test('field paths work for objects, lists and odd names, and never contain values', () => {
  const flawsOf = compileRequestSchema({
    properties: { 'a/b~c': { items: { required: ['id'], properties: { id: { type: 'string' } } } } },
  });
  const flaws = flawsOf({ 'a/b~c': [{ id: 'x' }, {}, { id: 12_345 }] });
  assert.deepEqual(
    flaws.map(({ field }) => field),
    ['request.a/b~c.1.id', 'request.a/b~c.2.id'],
  );
  assert.ok(!JSON.stringify(flaws).includes('12345'));
});

test('at most twenty flaws are reported', () => {
  const flawsOf = compileRequestSchema({ items: { type: 'string' } });
  assert.equal(flawsOf(Array.from({ length: 1000 }, () => 1)).length, 20);
});

test('both drafts are supported, each by its own rules, with formats', () => {
  const tuple = { $schema: 'http://json-schema.org/draft-07/schema#', items: [{ type: 'string' }] };
  assert.equal(compileRequestSchema(tuple)([1]).length, 1);
  const prefix = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    prefixItems: [{ type: 'string' }],
  };
  assert.equal(compileRequestSchema(prefix)([1]).length, 1);
  const address = { properties: { to: { type: 'string', format: 'email' } } };
  for (const $schema of [tuple.$schema, prefix.$schema])
    assert.deepEqual(compileRequestSchema({ $schema, ...address })({ to: 'nobody' }), [
      { field: 'request.to', reason: 'format', message: 'must be a valid email' },
    ]);
});

test('an invalid schema is refused with its error', () => {
  const cases: readonly (readonly [Readonly<Record<string, unknown>>, RegExp])[] = [
    [{ type: 'objekt' }, /type must be/],
    [{ requried: ['a'] }, /unknown keyword: "requried"/],
    [{ format: 'emial' }, /unknown format "emial"/],
    [{ pattern: '(' }, /regular expression/],
    [{ $ref: 'https://example.org/elsewhere.json' }, /can't resolve reference/],
    [{ $schema: 'https://example.org/my-own' }, /no schema with key or ref/],
    [{ $async: true, type: 'object' }, /\$async/],
  ];
  for (const [schema, why] of cases) {
    assert.throws(
      () => compileRequestSchema(schema),
      (error: Error) => {
        assert.match(error.message, /^invalid JSON Schema: /);
        assert.match(error.message, why);
        return error.constructor === Error;
      },
    );
  }
});
