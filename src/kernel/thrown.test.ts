import assert from 'node:assert/strict';
import { test } from 'node:test';
import { runInNewContext } from 'node:vm';
import { hostileValues } from '../../tests/support/hostile-values.ts';
import { describeThrown, thrownMessage } from './thrown.ts';

test('whatever was thrown is described within bounds, and never throws again', () => {
  for (const [name, make] of hostileValues) {
    const { message, className, stack } = describeThrown(make());
    assert.equal(typeof message, 'string', name);
    assert.ok(message.length > 0 && message.length <= 16_385, `${name}: ${message.length}`);
    assert.ok(className === null || typeof className === 'string', name);
    assert.ok(stack === null || stack.length <= 16_385, name);
  }
});

test('a plain object is told as JSON, everything else in its own words', () => {
  class PaymentError extends Error {}
  const words: readonly (readonly [value: unknown, message: string, className: string | null])[] = [
    [{ code: 7, why: ['no', 'stock'] }, '{"code":7,"why":["no","stock"]}', 'Object'],
    [['a', 1], '["a",1]', 'Array'],
    ['out of stock', 'out of stock', 'string'],
    [undefined, 'undefined', 'undefined'],
    [null, 'null', 'null'],
    [42n, '42', 'bigint'],
    [Symbol('s'), 'Symbol(s)', 'symbol'],
    [function refuse() {}, 'a function was thrown: refuse', 'Function'],
    [new PaymentError('declined'), 'declined', 'PaymentError'],
    [new TypeError(''), 'TypeError', 'TypeError'],
    [Object.assign(new Error('x'), { message: 5 }), '5', 'Error'],
    [Object.assign(new Error('x'), { message: { a: 1 } }), '{"a":1}', 'Error'],
    [new AggregateError([new Error('one'), 'two']), 'one; two', 'AggregateError'],
    [runInNewContext('new RangeError("elsewhere")'), 'elsewhere', 'RangeError'],
    [new Map([['a', 1]]), "Map(1) { 'a' => 1 }", 'Map'],
  ];
  for (const [value, message, className] of words) {
    assert.equal(describeThrown(value).message, message);
    assert.equal(describeThrown(value).className, className, message);
  }
  const cyclic: Record<string, unknown> = { name: 'me' };
  cyclic['self'] = cyclic;
  assert.equal(thrownMessage(cyclic), "<ref *1> { name: 'me', self: [Circular *1] }");
});

test('a stack names its frames and its causes, also below a message without an end', () => {
  const error = new Error('outer', { cause: new TypeError('inner', { cause: 'a string' }) });
  assert.match(
    describeThrown(error).stack ?? '',
    /^Error: outer\n {4}at .*caused by: TypeError: inner\n {4}at .*caused by: a string$/s,
  );
  const huge = new Error('x'.repeat(1_000_000));
  assert.match(describeThrown(huge).stack ?? '', /^Error: x{500}…\n {4}at .*thrown\.test\.ts/);
  const round = new Error('round');
  round.cause = round;
  assert.equal(describeThrown(round).stack?.split('caused by:').length, 6);
  assert.equal(describeThrown({ stack: 'made up' }).stack, null);
});
