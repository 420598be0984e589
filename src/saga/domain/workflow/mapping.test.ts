import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { mapInput, mapPath, mapUndoInput, normalizeMapping, referencesIn, type Sources } from './mapping.ts';
import { printReference, printTemplate } from './template.ts';
import type { Mapping } from './workflow.ts';

const sources: Sources = {
  input: { sku: 'A-1', qty: 3, gift: false, note: null, lines: [{ sku: 'B' }], nested: { deep: [1, [2]] } },
  outputs: { reserve: { id: 'r-1' }, ping: null },
  own: { id: 'o-1' },
};

const filled: readonly (readonly [mapping: Mapping, value: unknown])[] = [
  ['${input.qty}', 3],
  ['${input.gift}', false],
  ['${input.note}', null],
  ['${input.nested}', { deep: [1, [2]] }],
  ['${input.lines.0.sku}', 'B'],
  ['${input.nested.deep[1][0]}', 2],
  ['${steps.reserve.id}', 'r-1'],
  ['${steps.ping}', null],
  ['${own.id}', 'o-1'],
  ['${input.sku} x${input.qty}, ${input.gift}', 'A-1 x3, false'],
  ['costs $${5} and $', 'costs ${5} and $'],
  [
    { a: ['${input.sku}', { b: '${steps.reserve}' }], c: 1, d: null },
    { a: ['A-1', { b: { id: 'r-1' } }], c: 1, d: null },
  ],
];

for (const [mapping, value] of filled)
  test(`${JSON.stringify(mapping)} becomes ${JSON.stringify(value)}`, () => {
    assert.deepEqual(mapInput(mapping, sources), { ok: true, value });
    assert.deepEqual(mapUndoInput(mapping, sources), { ok: true, value });
  });

test('without a mapping the payload is sent as it is', () => {
  assert.deepEqual(mapInput(null, sources), { ok: true, value: sources.input });
  assert.deepEqual(mapUndoInput(null, sources), { ok: true, value: sources.input });
});

const unresolved: readonly (readonly [text: string, defect: RegExp])[] = [
  ['${input.colour}', /^input\.colour does not exist$/],
  ['${input.sku.length}', /input\.sku\.length does not exist/],
  ['${input.note.x}', /does not exist/],
  ['${input.lines.1}', /does not exist/],
  ['${input.lines.length}', /does not exist/],
  ['${input.lines.00}', /does not exist/],
  ['${input.__proto__}', /does not exist/],
  ['${input.constructor.name}', /does not exist/],
  ['${input.hasOwnProperty}', /does not exist/],
  ['${steps.toString}', /does not exist/],
  ['${steps.gone.id}', /steps\.gone\.id does not exist/],
  ['x-${input.colour}', /input\.colour is not a string, number or boolean/],
  ['x-${input.note}', /is not a string, number or boolean/],
  ['x-${input.nested}', /is not a string, number or boolean/],
];

for (const [text, defect] of unresolved)
  test(`${text} is a defect in an action, and left out of an undo`, () => {
    const mapped = mapInput({ sent: { a: 1, b: text } }, sources);
    assert(!mapped.ok);
    assert.match(mapped.defect, defect);
    assert.deepEqual(mapUndoInput({ a: 1, b: text, c: [0, text], d: { e: text } }, sources), {
      ok: true,
      value: { a: 1, c: [0, null], d: {} },
    });
    assert.deepEqual(mapUndoInput(text, sources), { ok: true, value: null });
  });

test('in doubt there is no own answer, which is not the same as an empty one', () => {
  const { own: _, ...unknown } = sources;
  assert.deepEqual(mapUndoInput({ all: '${own}', id: '${own.id}' }, unknown), { ok: true, value: {} });
  assert.deepEqual(mapUndoInput({ all: '${own}', id: '${own.id}' }, { ...sources, own: null }), {
    ok: true,
    value: { all: null },
  });
});

test('a key of the payload that would replace a prototype is copied as data', () => {
  const input: unknown = JSON.parse('{"a":{"__proto__":{"polluted":true}}}');
  const mapped = mapInput({ x: '${input.a}', y: '${input.a.__proto__.polluted}' }, { input, outputs: {} });
  assert(mapped.ok);
  assert.equal(JSON.stringify(mapped.value), '{"x":{"__proto__":{"polluted":true}},"y":true}');
  assert.equal(({} as { polluted?: true }).polluted, undefined);
});

test('a short mapping does not repeat a large payload without end', () => {
  const big = { input: { text: 'x'.repeat(100_000), list: Array(50_000).fill(1) }, outputs: {} };
  for (const one of ['${input.text}', '${input.list}', '${input}', 'a${input.text}']) {
    const mapped = mapInput(Array<Mapping>(12).fill(one), big);
    assert.deepEqual(mapped, { ok: false, defect: 'it would be larger than 1048576 characters' });
    assert.equal(mapUndoInput(Array<Mapping>(12).fill(one), big).ok, false);
    assert.equal(mapInput([one, one], big).ok, true);
  }
});

const paths: readonly (readonly [path: string, result: string | RegExp])[] = [
  ['/reservations', '/reservations'],
  ['/r/${steps.reserve.id}/lines/${input.qty}', '/r/r-1/lines/3'],
  ['/r/${own.id}?why=${input.why}', '/r/o-1?why=a%2Fb%3Fc%23%20%26'],
  ['/r/${input.unicode}', '/r/%E6%B3%A8%EF%BF%BD'],
  ['/r/${input.missing}', /input\.missing has no value for the path/],
  ['/r/${input.empty}', /input\.empty has no value for the path/],
  ['/r/${input.list}', /has no value for the path/],
  ['/r/${input.up}/x', /has a \. or \.\. segment/],
  ['/r/.${input.dot}', /has a \. or \.\. segment/],
  ['/r/x${input.up}', '/r/x..'],
  ['/r/${input.escaped}', '/r/%252e%252e'],
  ['/r/${input.long}', /too long/],
];

for (const [path, result] of paths)
  test(`the path ${path} is filled with one value for each reference, or not at all`, () => {
    const input = {
      qty: 3,
      why: 'a/b?c# &',
      unicode: '注\ud800',
      empty: '',
      list: [1],
      up: '..',
      dot: '.',
      escaped: '%2e%2e',
      long: 'x'.repeat(10_000),
    };
    const mapped = mapPath(path, { ...sources, input });
    if (typeof result === 'string') assert.deepEqual(mapped, { ok: true, value: result });
    else assert.match(mapped.ok ? '' : mapped.defect, result);
  });

test('a filled path has as many segments as its template', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 20 }), (value) => {
      const mapped = mapPath('/a/${input}/b', { input: value, outputs: {} });
      if (!mapped.ok) return;
      const { pathname, search, hash, host } = new URL(mapped.value, 'http://service.example');
      assert.deepEqual([pathname.split('/').length, search, hash, host], [4, '', '', 'service.example']);
    }),
  );
});

test('a reference to any place of a payload gives what is there', () => {
  fc.assert(
    fc.property(fc.jsonValue({ maxDepth: 4 }), fc.array(fc.nat(20), { maxLength: 4 }), (json, choices) => {
      const input: unknown = JSON.parse(JSON.stringify(json));
      let value = input;
      const path: string[] = [];
      for (const choice of choices) {
        const keys = typeof value === 'object' && value !== null ? Object.keys(value) : [];
        const key = keys[choice % keys.length];
        if (key === undefined) break;
        path.push(key);
        value = (value as Record<string, unknown>)[key];
      }
      const mapped = mapInput([printReference({ root: 'input', path })], { input, outputs: {} });
      assert(mapped.ok);
      assert.deepEqual(mapped.value, [value]);
    }),
  );
});

test('any JSON with its dollars escaped is sent as it stands', () => {
  const escape = (json: unknown): Mapping => {
    if (typeof json === 'string') return printTemplate(json === '' ? [] : [json]);
    if (Array.isArray(json)) return json.map(escape);
    if (typeof json !== 'object' || json === null) return json as Mapping;
    return Object.fromEntries(Object.entries(json).map(([key, child]) => [key, escape(child)]));
  };
  const tricky = fc.constantFrom('${input}', '$${x}', '$', '{', '${');
  const value = fc.letrec((tie) => ({
    any: fc.oneof({ maxDepth: 4 }, fc.jsonValue(), tricky, fc.array(tie('any'), { maxLength: 3 })),
  })).any;
  fc.assert(
    fc.property(value, (json) => {
      const mapping = escape(JSON.parse(JSON.stringify(json)));
      if (mapping === null) return;
      const mapped = mapInput(mapping, { input: null, outputs: {} });
      assert(mapped.ok);
      assert.equal(JSON.stringify(mapped.value), JSON.stringify(json));
      assert.deepEqual(normalizeMapping(mapping), { mapping, flaws: [] });
      assert.deepEqual(referencesIn(mapping), []);
    }),
  );
});
