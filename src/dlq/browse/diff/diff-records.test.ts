import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import * as fc from 'fast-check';
import type { Header } from '../../../kernel/broker-record.ts';
import { diffHeaders, diffValues } from './diff-records.ts';

const header = (key: string, value: string | null): Header => ({
  key: Buffer.from(key),
  value: value === null ? null : Buffer.from(value),
});
const isJson = (bytes: Buffer): boolean => {
  try {
    JSON.parse(bytes.toString());
    return true;
  } catch {
    return false;
  }
};
const diff = (from: string | null, to: string | null) =>
  diffValues(
    from === null ? null : Buffer.from(from, 'latin1'),
    to === null ? null : Buffer.from(to, 'latin1'),
    isJson,
  );

describe('headers', () => {
  test('are added, removed and changed, each of a name by its place', () => {
    const [a1, a2, b, c] = [header('a', '1'), header('a', '2'), header('b', null), header('c', '')];
    assert.deepEqual(diffHeaders([a1, b, a1], [a1, a2, c]), {
      added: [c],
      removed: [b],
      changed: [{ from: a1, to: a2 }],
      isReordered: false,
    });
  });

  test('null is not the empty value, and an order is a difference', () => {
    assert.equal(diffHeaders([header('a', null)], [header('a', '')])?.changed.length, 1);
    const [a, b] = [header('a', '1'), header('b', '1')];
    const moved = { added: [], removed: [], changed: [], isReordered: true };
    assert.deepEqual(diffHeaders([a, b], [b, a]), moved);
    assert.equal(diffHeaders([a, b], [a, b]), null);
  });

  test('that are added and removed account for every header', () => {
    const some = fc.array(
      fc
        .tuple(fc.constantFrom('a', 'b', 'A'), fc.constantFrom('1', '2', null))
        .map(([key, value]) => header(key, value)),
      { maxLength: 8 },
    );
    fc.assert(
      fc.property(some, some, (from, to) => {
        const { added, removed } = diffHeaders(from, to) ?? { added: [], removed: [] };
        assert.equal(from.length - removed.length + added.length, to.length);
      }),
    );
  });
});

describe('values', () => {
  test('of JSON on one line are compared member by member', () => {
    const found = diff('{"id":7,"qty":10}', '{"id":7,"qty":11}');
    assert.equal(found?.format, 'json');
    assert.deepEqual(found.lines, [
      '@@ -1,4 +1,4 @@',
      ' {',
      '   "id": 7,',
      '-  "qty": 10',
      '+  "qty": 11',
      ' }',
    ]);
    assert.equal(found.firstDifference, 15);
  });

  test('that differ only in their spacing have no lines, and still differ', () => {
    const found = diff('{"id":7}', '{ "id": 7 }');
    assert.deepEqual([found?.format, found?.lines], ['json', []]);
  });

  test('of text are compared by line, and of other bytes only by their position', () => {
    assert.deepEqual(diff('a\nb\n', 'a\nc\n')?.format, 'text');
    const bytes = diff('\xff\xfe', '\xff\xfd');
    assert.deepEqual([bytes?.format, bytes?.firstDifference, bytes?.lines], ['binary', 1, []]);
  });

  test('null is nothing, and not the empty value', () => {
    assert.deepEqual(diff(null, '{"id":7}')?.lines, ['@@ -0,0 +1,3 @@', '+{', '+  "id": 7', '+}']);
    assert.deepEqual(diff(null, '')?.lines, []);
    assert.equal(diff(null, null), null);
  });

  test('the first difference is found in values of any length', () => {
    fc.assert(
      fc.property(fc.nat({ max: 10_000 }), fc.nat({ max: 10_000 }), (length, place) => {
        const from = Buffer.alloc(length, 1);
        const to = Buffer.from(from);
        if (place < length) to[place] = 2;
        const found = diffValues(from, to, isJson);
        assert.equal(found?.firstDifference, place < length ? place : undefined);
        assert.equal(
          diffValues(from, Buffer.concat([from, to]), isJson)?.firstDifference,
          length || undefined,
        );
      }),
    );
  });
});
