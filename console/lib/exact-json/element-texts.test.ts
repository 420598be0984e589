import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { elementTexts } from './element-texts.ts';

test('each element is the text that was written', () => {
  expect(elementTexts('[1.0, 9223372036854775808,{"a":[1,2]} , "x,]\\"y", []]')).toEqual([
    '1.0',
    '9223372036854775808',
    '{"a":[1,2]}',
    '"x,]\\"y"',
    '[]',
  ]);
  expect(elementTexts(' [ ] ')).toEqual([]);
  for (const other of ['{"a": [1]}', '"[1]"', 'null', '7']) expect(elementTexts(other)).toEqual([]);
});

test('parsed, they are the elements of the parsed array', () => {
  fc.assert(
    fc.property(fc.array(fc.jsonValue()), fc.constantFrom(undefined, 2), (values, indent) => {
      const text = JSON.stringify(values, null, indent);
      expect(elementTexts(text).map((each): unknown => JSON.parse(each))).toEqual(JSON.parse(text));
    }),
  );
});
