import assert from 'node:assert/strict';
import { test } from 'node:test';

import * as fc from 'fast-check';

import { duration, text, wholeNumber, type Format } from './format.ts';
import { chosenName, mapOf, orMap, shapeOf, variantsOf } from './map-format.ts';
import { optional, withDefault } from '../setting.ts';

const shape = shapeOf({
  host: text(),
  port: withDefault(wholeNumber(1, 9), 5),
  max_age: optional(duration('1s', '1h')),
});
const animal = variantsOf('type', {
  cat: { lives: withDefault(wholeNumber(1, 9), 9) },
  dog: { owner: text() },
});
const animals = mapOf(chosenName('animals'), animal);

function issuesOf(format: Format<unknown>, value: unknown): readonly (readonly (string | undefined)[])[] {
  const parsed = format.parse(value);
  assert(!parsed.ok, JSON.stringify(parsed));
  return parsed.issues.map(({ at, reason, suggestion }) => [at, reason, suggestion]);
}

test('a shape has its values under the keys of the code, and defaults for what is left out', () => {
  assert.deepEqual(shape.parse({ host: 'a' }), {
    ok: true,
    value: { host: 'a', port: 5, maxAgeMs: undefined },
  });
  assert.deepEqual(shape.parse({ host: 'a', port: null, max_age: '1m' }), {
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
  assert.deepEqual(animal.parse({ type: 'CAT' }), { ok: true, value: { type: 'cat', lives: 9 } });
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
  assert.deepEqual(animals.parse({ tom: cat, 'a.b-c_1': cat, constructor: cat }), {
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
  assert(animals.parse({ [`a${'b'.repeat(99)}`]: cat }).ok);
  assert(!animals.parse({ [`a${'b'.repeat(100)}`]: cat }).ok);
});

test('an entry that is wrong leaves the others to be looked at', () => {
  const parsed = animals.parse({ tom: { type: 'cat', lives: 0 }, rex: { type: 'dog', owner: 'me' } });
  assert(!parsed.ok);
  assert.deepEqual(
    parsed.issues.map(({ at }) => at),
    ['.tom.lives'],
  );
  assert.deepEqual(parsed.rest, { rex: { type: 'dog', owner: 'me' } });
});

test('a map of more than a thousand names is refused', () => {
  const many = Object.fromEntries(Array.from({ length: 1001 }, (_, n) => [`n${n}`, { type: 'cat' }]));
  assert.deepEqual(issuesOf(animals, many), [['', 'must be a map of at most 1000 names', undefined]]);
});

test('a map in the environment is JSON', () => {
  assert.deepEqual(animals.fromText('{"tom": {"type": "cat"}}'), { tom: { type: 'cat' } });
  assert.match(issuesOf(animals, animals.fromText('tom')).join(), /must be a map of names, not text/);
});

test('a word or a map is either', () => {
  const format = orMap(text(), shape);
  assert.deepEqual(format.parse('a'), { ok: true, value: 'a' });
  assert.deepEqual(issuesOf(format, {}), [['.host', 'is missing', undefined]]);
  assert.deepEqual(format.fromText(' {"host": "a"}'), { host: 'a' });
  assert.equal(format.fromText('a'), 'a');
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
        const parsed = format.parse(value);
        if (!parsed.ok) assert(!JSON.stringify(parsed.issues).includes('hunter2'));
      }
    }),
    { numRuns: 2000 },
  );
});
