import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Type } from 'typebox';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { validationDetails } from './validation-details.ts';

const details = (schema: TSchema, value: unknown) => validationDetails(Compile(schema).Errors(value), 'body');

const Item = Type.Object({ size: Type.Integer({ maximum: 9 }) }, { additionalProperties: false });
const Order = Type.Object({ items: Type.Array(Item, { minItems: 1 }) }, { additionalProperties: false });

test('a field is named by its path', () => {
  assert.deepEqual(details(Order, { items: [{ size: 1 }, { size: 10, 'a/b~c': 1 }] }), [
    { field: 'items.1.a/b~c', reason: 'additional_properties', message: 'is unknown' },
    { field: 'items.1.size', reason: 'maximum', message: 'must be <= 9' },
  ]);
  assert.deepEqual(details(Order, []), [{ field: 'body', reason: 'type', message: 'must be object' }]);
});

test('a reason is the keyword in snake case', () => {
  assert.equal(details(Order, { items: [] })[0]?.reason, 'min_items');
  assert.equal(details(Type.String({ maxLength: 1 }), 'ab')[0]?.reason, 'max_length');
  assert.deepEqual(details(Type.String({ format: 'uuid' }), 'x'), [
    { field: 'body', reason: 'format', message: 'must be a valid uuid' },
  ]);
});

test('a union of constants is one enum detail, another union one any_of detail', () => {
  const Status = Type.Union([Type.Literal('A'), Type.Literal('B'), Type.Null()]);
  assert.deepEqual(details(Status, 'C'), [
    { field: 'body', reason: 'enum', message: 'must be one of: A, B' },
  ]);
  const Shape = Type.Object({ at: Type.Union([Item, Type.String({ minLength: 3 })]) });
  assert.deepEqual(details(Shape, { at: { size: 'x', colour: 1 } }), [
    { field: 'at', reason: 'any_of', message: 'does not match any allowed form' },
  ]);
});

test('a union longer than the list of errors is still one detail', () => {
  const Letter = Type.Union('abcdefghijklm'.split('').map((letter) => Type.Literal(letter)));
  assert.deepEqual(details(Letter, 'z'), [
    { field: 'body', reason: 'any_of', message: 'does not match any allowed form' },
  ]);
});

test('the invalid value is never repeated', () => {
  assert.doesNotMatch(JSON.stringify(details(Type.String({ maxLength: 3 }), 'hunter2')), /hunter2/);
});
