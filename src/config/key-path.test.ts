import assert from 'node:assert/strict';
import { test } from 'node:test';

import * as fc from 'fast-check';

import { childPath, isBelow, parentPath } from './key-path.ts';

const key = fc.oneof(
  fc.constantFrom('a', 'b', 'a.b', 'a"]', '["b', '', '\\', '"', '.', '0', '__proto__'),
  fc.string({ unit: 'binary', maxLength: 5 }),
);
const keys = fc.array(key, { maxLength: 4 });

const pathOf = (path: readonly string[]): string => path.reduce(childPath, 'root');

test('a plain key stands behind a dot, any other in quotes', () => {
  assert.equal(pathOf(['broker', 'timeout_ms']), 'root.broker.timeout_ms');
  assert.equal(pathOf(['eu.broker', 'url']), 'root["eu.broker"].url');
});

test('two paths are the same exactly if their keys are', () => {
  fc.assert(
    fc.property(keys, keys, (some, others) => {
      const isSame = some.length === others.length && some.every((each, index) => each === others[index]);
      assert.equal(pathOf(some) === pathOf(others), isSame);
    }),
    { numRuns: 5000 },
  );
});

test('a path is below another exactly if its keys begin with all of the other', () => {
  fc.assert(
    fc.property(keys, keys, (path, parent) => {
      const begins = path.length > parent.length && parent.every((each, index) => each === path[index]);
      assert.equal(isBelow(pathOf(path), pathOf(parent)), begins);
    }),
    { numRuns: 5000 },
  );
});

test('the parent of a path has one key or index less', () => {
  fc.assert(
    fc.property(keys, key, (path, last) => {
      assert.equal(parentPath(pathOf([...path, last])), pathOf(path));
    }),
  );
  assert.equal(parentPath('root.list[12]'), 'root.list');
  assert.equal(parentPath('root'), 'root');
});
