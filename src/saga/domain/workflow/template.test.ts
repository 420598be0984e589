import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { parseTemplate, printTemplate, type Reference, type Template } from './template.ts';

const texts: readonly (readonly [text: string, template: Template])[] = [
  ['', []],
  ['plain $5 {x} $', ['plain $5 {x} $']],
  ['${input}', [{ root: 'input', path: [] }]],
  ['${input.a.b}', [{ root: 'input', path: ['a', 'b'] }]],
  ['${ own.id }', [{ root: 'own', path: ['id'] }]],
  ['${steps.reserve.items.0.id}', [{ root: 'steps', step: 'reserve', path: ['items', '0', 'id'] }]],
  ['${input.items[0]["a b}"]}', [{ root: 'input', path: ['items', '0', 'a b}'] }]],
  ['${input.注文番号}', [{ root: 'input', path: ['注文番号'] }]],
  ['a ${input.x}-${own}!', ['a ', { root: 'input', path: ['x'] }, '-', { root: 'own', path: [] }, '!']],
  ['$${input.x}', ['${input.x}']],
  ['$$${input.x}', ['$', { root: 'input', path: ['x'] }]],
  ['$$$${input.x}', ['$${input.x}']],
];

for (const [text, template] of texts)
  test(`${JSON.stringify(text)} is read as what it says`, () => {
    assert.deepEqual(parseTemplate(text), { ok: true, template });
  });

test('two spellings of a path have one', () => {
  const parsed = parseTemplate('${ input["items"][0].sku }');
  assert(parsed.ok);
  assert.equal(printTemplate(parsed.template), '${input.items.0.sku}');
});

const wrong: readonly (readonly [text: string, message: RegExp])[] = [
  ['${input.x', /unterminated reference: \$\{input\.x$/],
  ['${input["}', /unterminated reference/],
  ['${}', /is not a path/],
  ['${input.a + 1}', /is not a path: \$\{input\.a \+ 1\}/],
  ['${input..a}', /is not a path/],
  ['${input.f()}', /is not a path/],
  ['${input[-1]}', /is not a path/],
  ['${input[x]}', /is not a path/],
  ['${input["\\x"]}', /is not a JSON string/],
  ['${input["\\ud800"]}', /is not a JSON string/],
  ['${process.env}', /refers to process: a path begins with input, steps or own/],
  ['${constructor}', /refers to constructor/],
  ['${steps}', /without a name/],
  [`\${input${'.a'.repeat(600)}}`, /more than 512 names/],
  [`\${${'é'.repeat(300)} !}`, /is not a path: .{60}…$/],
];

for (const [text, message] of wrong)
  test(`${JSON.stringify(text.slice(0, 40))} is refused`, () => {
    const parsed = parseTemplate(text);
    assert(!parsed.ok);
    assert.match(parsed.message, message);
  });

const key = fc.oneof(
  fc.constantFrom('a', '0', '', '__proto__', 'a.b', '"', '\\', '}', '${', '注', 'x y'),
  fc.string({ unit: 'grapheme' }),
);
const path = fc.array(key, { maxLength: 4 });
const reference: fc.Arbitrary<Reference> = fc.oneof(
  fc.record({ root: fc.constantFrom('input' as const, 'own' as const), path }, { noNullPrototype: true }),
  fc.record({ root: fc.constant('steps' as const), step: key, path }, { noNullPrototype: true }),
);
const literal = fc
  .array(fc.constantFrom('$', '{', '}', 'input', 'a', '"', ' '), { minLength: 1, maxLength: 8 })
  .map((parts) => parts.join(''));
const template: fc.Arbitrary<Template> = fc
  .array(fc.oneof(literal, reference), { maxLength: 6 })
  .map((parts) => parts.filter((part, at) => typeof part !== 'string' || typeof parts[at - 1] !== 'string'));

test('every template is read back from its text', () => {
  fc.assert(
    fc.property(template, (each) => {
      assert.deepEqual(parseTemplate(printTemplate(each)), { ok: true, template: each });
    }),
    { numRuns: 1000 },
  );
});

test('a text that can be read has one spelling, and no text does harm', () => {
  const hostile = fc
    .array(fc.constantFrom('$', '{', '}', '"', '[', ']', '.', '0', 'input', 'steps', 'own', ' ', '\\', 'é'))
    .map((parts) => parts.join(''));
  fc.assert(
    fc.property(hostile, (text) => {
      const parsed = parseTemplate(text);
      if (!parsed.ok) return;
      const spelt = printTemplate(parsed.template);
      const again = parseTemplate(spelt);
      assert(again.ok);
      assert.deepEqual(again.template, parsed.template);
      assert.equal(printTemplate(again.template), spelt);
    }),
    { numRuns: 2000 },
  );
});
