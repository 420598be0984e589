import assert from 'node:assert/strict';
import { test } from 'node:test';

import * as fc from 'fast-check';

import { isMap } from '../formats/value.ts';
import { mergeLayers, type Layer } from './merge-layers.ts';

const layerOf = (value: unknown): Layer => ({
  entries: [{ keys: ['map'], value, source: 'x' }],
  problems: [],
  warnings: [],
});

const mergedBy = (layers: readonly unknown[]): unknown =>
  plain(mergeLayers(layers.map(layerOf)).tree['map'] ?? 'nothing');

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
  assert.equal(mergeLayers([layerOf(deep)]).given.size, 8);
  const wide = Object.fromEntries(Array.from({ length: 1001 }, (_, n) => [`n${n}`, n]));
  assert.deepEqual(
    [...mergeLayers([layerOf(wide)]).given],
    [['map', { value: wide, source: 'x', rank: 0, file: undefined }]],
  );
});
