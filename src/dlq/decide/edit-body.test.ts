import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import * as fc from 'fast-check';
import { AppError } from '../../kernel/errors.ts';
import { readChanges } from './edit-body.ts';

type Body = Parameters<typeof readChanges>[0];

const read = (body: Omit<Body, 'reason'>) => readChanges({ reason: 'why', ...body });
const errorOf = (body: Omit<Body, 'reason'>): readonly [kind: string, field: string | undefined] => {
  try {
    read(body);
  } catch (error) {
    assert.ok(error instanceof AppError);
    return [error.kind, error.details[0]?.field];
  }
  throw new Error('it was accepted');
};
const base64 = (text: string): string => Buffer.from(text).toString('base64');

test('what is not named is not changed, and null is a change', () => {
  assert.deepEqual(read({ value: null }), { value: null });
  assert.deepEqual(read({ key: '', target_topic: 'orders' }), {
    key: Buffer.alloc(0),
    targetTopic: 'orders',
  });
  assert.deepEqual(read({ headers: [] }), { headers: [] });
});

test('any bytes can be sent', () => {
  fc.assert(
    fc.property(fc.uint8Array(), fc.uint8Array(), (key, value) => {
      const encoded = { key_base64: Buffer.from(key).toString('base64') };
      const changes = read({ ...encoded, value_base64: Buffer.from(value).toString('base64') });
      assert.deepEqual(changes, { key: Buffer.from(key), value: Buffer.from(value) });
    }),
  );
});

describe('headers', () => {
  test('are read in their order, with duplicates, nulls and bytes', () => {
    const headers = [
      { key: 'a', value: '1' },
      { key: 'a', value: null },
      { key: null, key_base64: '/w==', value: null, value_base64: '/g==' },
      { key: '', value: '' },
    ];
    assert.deepEqual(read({ headers }).headers, [
      { key: Buffer.from('a'), value: Buffer.from('1') },
      { key: Buffer.from('a'), value: null },
      { key: Buffer.from([0xff]), value: Buffer.from([0xfe]) },
      { key: Buffer.alloc(0), value: Buffer.alloc(0) },
    ]);
  });

  test('may have text in both forms, as they are shown', () => {
    const shown = { key: 'a', value: 'ü', value_base64: base64('ü') };
    assert.deepEqual(read({ headers: [shown] }).headers, [
      { key: Buffer.from('a'), value: Buffer.from('ü') },
    ]);
    const [kind, field] = errorOf({ headers: [{ ...shown, value: 'u' }] });
    assert.deepEqual([kind, field], ['semantic', 'headers.0.value']);
  });

  test('of ours are refused', () => {
    for (const key of ['redrive-attempt', 'Redrive-Message-Id', 'redrive-version'])
      assert.deepEqual(
        errorOf({
          headers: [
            { key: 'a', value: null },
            { key, value: '1' },
          ],
        }),
        ['semantic', 'headers.1.key'],
      );
    const hidden = base64('redrive-attempt');
    assert.deepEqual(errorOf({ headers: [{ key_base64: hidden, value: null }] }), [
      'semantic',
      'headers.0.key',
    ]);
  });

  test('without a name or a value are refused', () => {
    assert.deepEqual(errorOf({ headers: [{ value: '1' }] }), ['validation', 'headers.0.key']);
    assert.deepEqual(errorOf({ headers: [{ key: null, value: '1' }] }), ['validation', 'headers.0.key']);
    assert.deepEqual(errorOf({ headers: [{ key: 'a' }] }), ['validation', 'headers.0.value']);
  });

  test('are bounded together, and the key is bounded', () => {
    const large = 'x'.repeat(600_000);
    const both = ['a', 'b'].map((key) => ({ key, value: large }));
    assert.deepEqual(errorOf({ headers: both }), ['semantic', 'headers']);
    assert.deepEqual(errorOf({ key: 'x'.repeat(1_048_577) }), ['semantic', 'key']);
  });
});

test('two forms of one part are refused, also if one of them is null', () => {
  assert.deepEqual(errorOf({ value: 'a', value_base64: base64('a') }), ['semantic', 'value']);
  assert.deepEqual(errorOf({ value: null, value_base64: base64('a') }), ['semantic', 'value']);
  assert.deepEqual(errorOf({ key: 'a', key_base64: base64('a') }), ['semantic', 'key']);
});

test('what is not Base64 is refused instead of decoded in part', () => {
  for (const text of ['a', 'YQ', 'YQ=', 'YQ==\n', 'Y Q==', '!!!!', 'YR==', 'YQ==YQ=='])
    assert.deepEqual(errorOf({ value_base64: text }), ['validation', 'value_base64'], text);
});

test('an edit that changes nothing is refused', () => {
  assert.deepEqual(errorOf({}), ['semantic', 'value']);
  assert.deepEqual(errorOf({ may_send_twice: true }), ['semantic', 'value']);
});
