import assert from 'node:assert/strict';
import { test } from 'node:test';

import * as fc from 'fast-check';

import { accept, isMap, type Format } from '../formats/format.ts';
import { entriesOf, mergeLayers } from './layer.ts';
import { readValues, withDefault } from '../setting.ts';

/** Takes whatever the layers make of it. */
const anything: Format<unknown> = {
  unit: '',
  fromText: (text) => text,
  parse: accept,
  get keys() {
    return { chosen: anything };
  },
};
const schema = { map: withDefault(anything, 'nothing') };

function mergedBy(layers: readonly unknown[]): unknown {
  const given = mergeLayers(
    layers.map((value, index) => ({
      entries: entriesOf('map', value, () => `layer ${index}`),
      problems: [],
      warnings: [],
    })),
  );
  return plain(readValues(schema, given, []).map);
}

/** With the prototypes that comparisons expect. */
const plain = (value: unknown): unknown =>
  isMap(value) ? Object.fromEntries(Object.entries(value).map(([key, each]) => [key, plain(each)])) : value;

/** The rule in its plainest words; undefined is what is not there. */
function merge(lower: unknown, upper: unknown): unknown {
  if (upper === null) return undefined;
  if (!isMap(upper)) return upper;
  const below = isMap(lower) ? lower : {};
  const keys = [...new Set([...Object.keys(below), ...Object.keys(upper)])];
  const merged = keys.map((key) => {
    const own = Object.hasOwn(below, key) ? below[key] : undefined;
    return [key, Object.hasOwn(upper, key) ? merge(own, upper[key]) : own] as const;
  });
  return Object.fromEntries(merged.filter(([, value]) => value !== undefined));
}

const { tree } = fc.letrec<{ tree: unknown }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<unknown>(null, 1, 'x', [1, null]),
    fc.dictionary(fc.constantFrom('a', 'b', 'a.b', '["b"]', '', '__proto__', 'constructor'), tie('tree')),
  ),
}));

test('maps merge key by key over any layers, lists replace, null removes', () => {
  fc.assert(
    fc.property(fc.array(tree, { minLength: 1, maxLength: 4 }), (layers) => {
      const expected = layers.reduce(merge, undefined) ?? 'nothing';
      assert.deepEqual(mergedBy(layers), plain(expected));
    }),
    { numRuns: 3000 },
  );
});

test('a dot in a name never makes it part of another', () => {
  assert.deepEqual(mergedBy([{ a: { url: 1 }, 'a.url': 2, 'a.b': { url: 3 } }, { a: null }]), {
    'a.url': 2,
    'a.b': { url: 3 },
  });
});

test('what is nested too deeply or has too many keys stays whole', () => {
  const deep: unknown = JSON.parse(`${'{"a":'.repeat(5000)}1${'}'.repeat(5000)}`);
  assert.equal(entriesOf('map', deep, () => '').length, 9);
  const wide = Object.fromEntries(Array.from({ length: 1001 }, (_, n) => [`n${n}`, n]));
  assert.deepEqual(
    entriesOf('map', wide, () => 'x'),
    [{ path: 'map', value: wide, source: 'x' }],
  );
});
