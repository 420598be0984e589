import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { captureGlob, compileGlobs } from './match-glob.ts';

const matches = (pattern: string, topic: string): boolean => compileGlobs([pattern])(topic);

test('* matches any number of characters, including dots, and none', () => {
  assert.ok(matches('*.dlq.v1', 'orders.dlq.v1'));
  assert.ok(matches('*.dlq.v1', 'shop.orders.events.dlq.v1'));
  assert.ok(matches('*.dlq.v1', '.dlq.v1'));
  assert.ok(matches('*', 'anything'));
  assert.ok(matches('a*b*c', 'a-b-b-c'));
});

test('? matches one character', () => {
  assert.ok(matches('orders.dlq.v?', 'orders.dlq.v2'));
  assert.ok(!matches('orders.dlq.v?', 'orders.dlq.v'));
  assert.ok(!matches('orders.dlq.v?', 'orders.dlq.v12'));
  assert.ok(matches('*?', 'x') && !matches('*?', ''));
});

test('everything else matches itself, case-sensitively, and the whole name must match', () => {
  assert.ok(!matches('*.dlq', 'ordersXdlq'));
  assert.ok(!matches('*.dlq', 'orders.DLQ'));
  assert.ok(!matches('*.dlq', 'orders.dlq.v1'));
  assert.ok(!matches('dlq', 'my-dlq'));
  assert.ok(!matches('[a-z]+', 'a') && matches('[a-z]+', '[a-z]+'));
  assert.ok(!matches('a*a', 'a'));
});

test('a list matches what one of its patterns matches, and an empty list nothing', () => {
  const isDeadLetterTopic = compileGlobs(['*.dlq.v1', '*.dlq']);
  assert.ok(isDeadLetterTopic('orders.dlq'));
  assert.ok(isDeadLetterTopic('orders.dlq.v1'));
  assert.ok(!isDeadLetterTopic('orders.v1'));
  assert.ok(!compileGlobs([])(''));
});

test('it agrees with the equivalent regular expression', () => {
  const unit = fc.constantFrom('a', 'b', '.', '-');
  const pattern = fc
    .array(fc.oneof(unit, fc.constantFrom('*', '?')), { maxLength: 8 })
    .map((parts) => parts.join(''));
  const topic = fc.array(unit, { maxLength: 12 }).map((parts) => parts.join(''));
  fc.assert(
    fc.property(pattern, topic, (glob, name) => {
      const source = glob
        .replaceAll('.', String.raw`\.`)
        .replaceAll('*', '.*')
        .replaceAll('?', '.');
      assert.equal(matches(glob, name), new RegExp(`^${source}$`).test(name));
    }),
    { numRuns: 5000 },
  );
});

test('a hostile pattern takes no more than its length times that of the name', () => {
  const pattern = '*a'.repeat(120);
  const started = performance.now();
  for (let round = 0; round < 100; round += 1) matches(`${pattern}b`, 'a'.repeat(249));
  assert.ok(performance.now() - started < 500);
});

test('replacing the stars by what they matched yields the topic', () => {
  const unit = fc.constantFrom('a', 'b', '.', '*');
  fc.assert(
    fc.property(
      fc.array(unit, { maxLength: 8 }),
      fc.array(fc.constantFrom('a', 'b', '.'), { maxLength: 12 }),
      (parts, name) => {
        const caught = captureGlob(parts.join(''), name.join(''));
        fc.pre(caught !== undefined);
        let star = 0;
        assert.equal(parts.map((part) => (part === '*' ? caught[star++] : part)).join(''), name.join(''));
        assert.equal(star, caught.length);
      },
    ),
  );
});

test('earlier stars match least', () => {
  assert.deepEqual(captureGlob('*.dlq.*', 'a.dlq.b.dlq.c'), ['a', 'b.dlq.c']);
  assert.deepEqual(captureGlob('orders', 'orders'), []);
  assert.equal(captureGlob('orders.*', 'payments.dlq'), undefined);
});
