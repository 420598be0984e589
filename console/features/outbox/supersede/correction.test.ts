import { expect, test } from 'vitest';
import { bodyOf, nextKey, problemsOf, type Correction } from './correction.ts';

const original = { key: 'order-000117', isInDoubt: false, isTyped: false };
const correction: Correction = {
  request: '{"qty": 1}',
  key: 'order-000117-2',
  reason: 'qty was 0',
  isChecked: false,
  typed: '',
};

test('the next key counts revisions, fits, and leaves the numbers of the key alone', () => {
  expect(nextKey('order-000117')).toBe('order-000117-r2');
  expect(nextKey('order-000117-r2')).toBe('order-000117-r3');
  expect(nextKey('order-000117-r9')).toBe('order-000117-r10');
  const long = 'x'.repeat(64);
  expect(nextKey(long)).toBe(`${'x'.repeat(61)}-r2`);
  expect(nextKey(nextKey(long))).toBe(`${'x'.repeat(61)}-r3`);
});

test('what is wrong is told by field', () => {
  const of = (part: Partial<Correction>, more = {}) =>
    problemsOf({ ...correction, ...part }, { ...original, ...more }).map(({ field, code }) => [field, code]);
  expect(of({})).toEqual([]);
  expect(of({ request: '{"qty": }' })).toEqual([['request', 'not_json']]);
  expect(of({ request: '[1]' })).toEqual([['request', 'not_object']]);
  expect(of({ request: '{"a": 1, "a": 2}' })).toEqual([['request', 'duplicate_keys']]);
  expect(of({ key: 'short' })).toEqual([['key', 'bad_key']]);
  expect(of({ key: 'with space and more' })).toEqual([['key', 'bad_key']]);
  expect(of({ key: original.key })).toEqual([['key', 'same_key']]);
  expect(of({ reason: '  ' })).toEqual([['reason', 'missing']]);
  expect(of({}, { isInDoubt: true })).toEqual([['checked', 'missing']]);
  expect(of({ isChecked: true }, { isInDoubt: true })).toEqual([]);
  expect(of({ typed: 'order' }, { isTyped: true })).toEqual([['typed', 'missing']]);
  expect(of({ typed: original.key }, { isTyped: true })).toEqual([]);
});

test('the request is sent with the digits as they were written', () => {
  const body = bodyOf({ ...correction, request: '{"n": 9223372036854775807, "f": 1.10}', isChecked: true });
  expect(body).toContain('"request":{"n": 9223372036854775807, "f": 1.10}');
  expect(JSON.parse(body)).toMatchObject({
    idempotency_key: 'order-000117-2',
    reason: 'qty was 0',
    effect_checked: true,
  });
  expect(JSON.parse(bodyOf(correction))).not.toHaveProperty('effect_checked');
});
