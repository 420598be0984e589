import assert from 'node:assert/strict';
import { test } from 'node:test';
import { codeOf } from '../../kernel/errors.ts';
import { entityTagOf, readIfMatch } from './entity-tag.ts';

const read = (text?: string): readonly string[] =>
  readIfMatch('dlq', text === undefined ? {} : { 'if-match': text });
const codeFor = (text?: string): string | undefined => {
  try {
    read(text);
  } catch (error) {
    return codeOf(error);
  }
  return undefined;
};

test('a tag is read as it was made, alone or among others', () => {
  assert.equal(entityTagOf(2, 71n), '"2-71"');
  assert.deepEqual(read('"2-71"'), ['"2-71"']);
  assert.deepEqual(read(' "1-7" ,\t"2-71"'), ['"1-7"', '"2-71"']);
});

test('a weak tag is never the tag of an item', () => {
  assert.deepEqual(read('W/"2-71"'), ['W/"2-71"']);
});

test('without the header the precondition is missing', () => {
  assert.equal(codeFor(), 'SYS_DLQ_PRECONDITION_REQUIRED');
});

for (const text of ['', '*', '2-71', '"2-71', '"2-71" "3-4"', '"2-71",', '"\u00fc"', '"a",'.repeat(4000)])
  test(`${text.slice(0, 20)} is not a list of tags`, () => {
    assert.equal(codeFor(text), 'SYS_DLQ_VALIDATION_ERROR');
  });
