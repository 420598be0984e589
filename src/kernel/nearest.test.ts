import assert from 'node:assert/strict';
import { test } from 'node:test';

import { nearest } from './nearest.ts';

const KEYS = ['host', 'port', 'name', 'wake', 'max_retries'];

test('a slip of the fingers finds the word that was meant', () => {
  for (const word of ['hst', 'hosst', 'hpst', 'ohst', 'HOST'])
    assert.deepEqual(nearest(word, KEYS), ['host']);
});

test('the spelling of other conventions finds the word', () => {
  for (const word of ['maxRetries', 'max-retries', 'MAX_RETRIES'])
    assert.deepEqual(nearest(word, KEYS), ['max_retries']);
});

test('words that are equally near are all named', () => {
  assert.deepEqual(nearest('wame', KEYS), ['name', 'wake']);
});

test('a word like none of them finds nothing', () => {
  for (const word of ['', 'x', 'colour', 'x'.repeat(100_000)]) assert.deepEqual(nearest(word, KEYS), []);
});
