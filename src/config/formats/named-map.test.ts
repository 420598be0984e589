import assert from 'node:assert/strict';
import { test } from 'node:test';

import * as fc from 'fast-check';

import { Type, type TSchema } from 'typebox';
import { parseValue } from '../../../tests/support/parse-value.ts';
import { fromText } from '../from-text.ts';
import { chosenName, mapOf } from './named-map.ts';
import { duration, optional, text, wholeNumber } from './value.ts';

const shape = Type.Object({
  host: text(),
  port: wholeNumber(1, 9, { default: 5 }),
  max_age: optional(duration('1s', '1h')),
});
const animal = Type.Union([
  Type.Object({ type: Type.Literal('cat'), lives: wholeNumber(1, 9, { default: 9 }) }),
  Type.Object({ type: Type.Literal('dog'), owner: text() }),
]);
const animals = mapOf(chosenName('animals'), animal);

function issuesOf(format: TSchema, value: unknown): readonly (readonly (string | undefined)[])[] {
  const parsed = parseValue(format, value);
  assert(!parsed.ok, JSON.stringify(parsed));
  return parsed.issues.map(({ at, reason, suggestion }) => [at, reason, suggestion]);
}

test('a shape has its values under the keys of the code, and defaults for what is left out', () => {
  assert.deepEqual(parseValue(shape, { host: 'a' }), {
    ok: true,
    value: { host: 'a', port: 5, maxAgeMs: undefined },
  });
  assert.deepEqual(parseValue(shape, { host: 'a', port: null, max_age: '1m' }), {
    ok: true,
    value: { host: 'a', port: 5, maxAgeMs: 60_000 },
  });
});

test('a shape tells every key that is wrong, unknown or missing', () => {
  assert.deepEqual(issuesOf(shape, { hots: 'a', port: 0, 'x.y': 1 }), [
    ['.hots', 'unknown key', 'host'],
    ['["x.y"]', 'unknown key', undefined],
    ['.host', 'is missing', undefined],
    ['.port', 'must be a whole number from 1 to 9', undefined],
  ]);
  for (const value of ['a', ['a'], 5, null])
    assert.match(issuesOf(shape, value)[0]?.[1] ?? '', /must be a map/);
});

test('keys that every object has are unknown to a shape, too', () => {
  for (const key of ['__proto__', 'constructor', 'toString']) {
    const [[at, reason] = [], ...more] = issuesOf(shape, JSON.parse(`{"host": "a", "${key}": {}}`));
    assert.deepEqual([at, reason, more], [`.${key}`, 'unknown key', []]);
  }
});

test('the word of a variant decides which keys there are', () => {
  assert.deepEqual(parseValue(animal, { type: 'CAT' }), { ok: true, value: { type: 'cat', lives: 9 } });
  assert.deepEqual(issuesOf(animal, { type: 'cat', owner: 'x' }), [
    ['.owner', 'unknown key for type cat', undefined],
  ]);
  assert.deepEqual(issuesOf(animal, { type: 'dgo', owner: 5 }), [
    ['.type', 'must be one of cat, dog', 'dog'],
  ]);
  assert.deepEqual(issuesOf(animal, { owner: 'x' }), [['.type', 'is missing', undefined]]);
});

test('a map of chosen names keeps its names and refuses illegal ones', () => {
  const cat = { type: 'cat' };
  assert.deepEqual(parseValue(animals, { tom: cat, 'a.b-c_1': cat, constructor: cat }), {
    ok: true,
    value: {
      tom: { type: 'cat', lives: 9 },
      'a.b-c_1': { type: 'cat', lives: 9 },
      constructor: { type: 'cat', lives: 9 },
    },
  });
  const rule = 'a name must be 1 to 100 characters of a-z, 0-9, _, . and -, beginning with a letter';
  const reserved = 'names that begin with _ are reserved for animals that the system makes itself';
  assert.deepEqual(issuesOf(animals, { Tom: cat, '1st': cat, '': cat, 'a b': cat, _tom: cat }), [
    ['.Tom', rule, 'tom'],
    ['.1st', rule, undefined],
    ['[""]', rule, undefined],
    ['["a b"]', rule, undefined],
    ['._tom', reserved, undefined],
  ]);
  assert(parseValue(animals, { [`a${'b'.repeat(99)}`]: cat }).ok);
  assert(!parseValue(animals, { [`a${'b'.repeat(100)}`]: cat }).ok);
});

test('an entry that is wrong leaves the others to be looked at', () => {
  const parsed = parseValue(animals, { tom: { type: 'cat', lives: 0 }, rex: { type: 'dog', owner: 'me' } });
  assert(!parsed.ok);
  assert.deepEqual(
    parsed.issues.map(({ at }) => at),
    ['.tom.lives'],
  );
  assert.deepEqual(parsed.rest, { tom: { type: 'cat', lives: 9 }, rex: { type: 'dog', owner: 'me' } });
});

test('a map of more than a thousand names is refused', () => {
  const many = Object.fromEntries(Array.from({ length: 1001 }, (_, n) => [`n${n}`, { type: 'cat' }]));
  assert.deepEqual(issuesOf(animals, many), [['', 'must be a map of at most 1000 names', undefined]]);
});

test('a map in the environment is JSON', () => {
  assert.deepEqual(fromText(animals, '{"tom": {"type": "cat"}}'), { tom: { type: 'cat' } });
  assert.match(issuesOf(animals, fromText(animals, 'tom')).join(), /must be a map of names, not text/);
});

test('a word or a map is either', () => {
  const format = Type.Union([text(), shape]);
  assert.deepEqual(parseValue(format, 'a'), { ok: true, value: 'a' });
  assert.deepEqual(issuesOf(format, {}), [['.host', 'is missing', undefined]]);
  assert.deepEqual(fromText(format, ' {"host": "a"}'), { host: 'a' });
  assert.equal(fromText(format, 'a'), 'a');
});

test('no value makes a map throw, and no reason repeats a value', () => {
  const marked = fc.letrec<{ tree: unknown }>((tie) => ({
    tree: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom<unknown>('hunter2', ' hunter2', 5, null, undefined, true),
      fc.array(tie('tree'), { maxLength: 3 }),
      fc.dictionary(
        fc.constantFrom('tom', '_tom', 'type', 'lives', 'owner', 'host', '__proto__', 'a.b', ''),
        tie('tree'),
      ),
    ),
  })).tree;
  fc.assert(
    fc.property(marked, (value) => {
      for (const format of [shape, animal, animals]) {
        const parsed = parseValue(format, value);
        if (!parsed.ok) assert(!JSON.stringify(parsed.issues).includes('hunter2'));
      }
    }),
    { numRuns: 2000 },
  );
});
